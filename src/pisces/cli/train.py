"""`pisces train`: one run of an experiment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pisces.cli.options import Option, given_options, given_settings, make_options, option, plain_options
from pisces.cli.terminal import console, note_compilation
from pisces.experiments.experiment import Experiment


@dataclass(frozen=True)
class TrainOptions:
    """Where and how the run is done."""

    device: str = "cpu"
    """Device to compute on: cpu or cuda."""
    tensorboard: bool = False
    """Also write TensorBoard events into the run folder."""
    out: Path = Path("runs")
    """Root of the run folders."""


def train_options(experiment: Experiment[Any]) -> type:
    """Returns the options of ``pisces train EXPERIMENT``."""
    kind = experiment.config_class
    own: list[Option] = [
        option(kind, "method", kind.methods[0], text=f"{', '.join(kind.methods)}."),
        option(kind, "preset", kind.presets[0], text=f"{', '.join(kind.presets)}."),
        option(kind, "seed", 0),
    ]
    own += [option(kind, entry.name, entry.default) for entry in plain_options(experiment)]
    return make_options("train", experiment, own, TrainOptions)


def train(experiment: Experiment[Any], options: Any) -> None:
    """Trains one agent, or resumes an interrupted run."""
    config = experiment.make_config(
        options.method,
        preset=options.preset,
        seed=options.seed,
        changes=given_settings(options),
        **given_options(options, experiment),
    )
    from pisces.cli.displays import RunDisplay
    from pisces.cli.tensorboard import EventLog
    from pisces.runs.job import Job, check_device

    check_device(options.common.device, experiment)
    note_compilation()
    common, job = options.common, Job(experiment, config, options.common.device)
    events = EventLog(job.folder(common.out).path if common.tensorboard else None)
    with RunDisplay([f"{config.label}, seed {config.seed}"], experiment.describe, console) as display, events:
        folder = job.run(common.out, [lambda progress: display.update(0, progress), events.update])
    text = f"{experiment.describe(folder.read_result())}; run folder: {folder.path}"
    console.print(text, soft_wrap=True)

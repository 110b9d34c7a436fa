"""The experiment `distracting`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pisces.errors import unknown_name
from pisces.experiments.distracting.config import METHODS, SIMILARITY, DistractingConfig, unused_settings
from pisces.experiments.distracting.paper import DISTRACTING
from pisces.experiments.experiment import Evaluation, Experiment, PageSection, Story, spread
from pisces.experiments.published import Published
from pisces.runs.measure import Measure
from pisces.runs.progress import Listener
from pisces.runs.search_space import Choice, Space
from pisces.runs.store import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pisces.experiments.distracting.policy import ControlPolicy
    from pisces.reports.results import StoredRun
    from pisces.reports.tables import Table

EPISODES = 10
"""Episodes per kind of video by default."""


class Distracting(Experiment[DistractingConfig]):
    """SAC + DrQ with video backgrounds, with and without policy similarity embeddings."""

    name = "distracting"
    summary = "Train SAC + DrQ on control tasks with distracting backgrounds."
    config_class = DistractingConfig
    measures = (Measure("test_return", "return with unseen backgrounds", "higher", limits=(0.0, 1000.0)),)
    reported = ("train_return",)
    score = Measure("validation_return", "return with validation videos", "higher")
    axes = ("task", "init")
    defaults = {  # noqa: RUF012 (never changed)
        "train": {"method": "drq+pse"},
        "sweep": {"methods": "drq,drq+pse", "tasks": "cartpole-swingup"},
        "tune": {"method": "drq+pse", "seeds": "1000", "trials": 18, "sampler": "grid"},
    }
    # A search does not read episodes on test videos, and at least one is played.
    tuning_changes = {"evaluation_episodes": 1, "final_episodes": 1}  # noqa: RUF012 (never changed)
    story = Story(
        baseline="drq",
        method="drq+pse",
        claim="{method} reaches a return of {value} with unseen backgrounds, {baseline} {other}",
        rule="The agent controls a simulated robot from pixels, with videos playing behind it that it has never seen.",
    )
    method_names = {  # noqa: RUF012 (never changed)
        "sac": "SAC",
        "drq": "DrQ",
        "drq+randconv": "DrQ + RandConv",
        "drq+pse": "DrQ + PSE",
        "drq+randconv+pse": "DrQ + RandConv + PSE",
        "drqv2": "DrQ-v2",
        "drqv2+pse": "DrQ-v2 + PSE",
    }
    evaluation_options = ("episodes",)

    def sweep_configs(
        self,
        methods: Sequence[str],
        seeds: Sequence[int],
        preset: str,
        axes: Mapping[str, Sequence[Any]],
        changes: Mapping[str, Any],
        **options: Any,
    ) -> list[DistractingConfig]:
        """Returns all combinations, seed by seed, within a seed those first that others need.

        Settings of losses that a method does not have leave it as it is.
        """
        configs: list[DistractingConfig] = []
        for method in methods:
            unused = unused_settings(method) if method in METHODS else ()
            own = {name: value for name, value in changes.items() if name not in unused}
            configs += super().sweep_configs([method], seeds, preset, axes, own, **options)
        place = {seed: index for index, seed in enumerate(seeds)}
        return sorted(configs, key=lambda config: (place[config.seed], config.needs_pretraining))

    def requirements(self, config: DistractingConfig) -> Sequence[DistractingConfig]:
        """The pretraining run, for methods with pairs and for pretrained initialization."""
        return (config.pretraining(),) if config.needs_pretraining else ()

    def run(self, config: DistractingConfig, folder: RunFolder, listeners: Sequence[Listener], device: str) -> None:
        """Trains, or resumes training."""
        from pisces.experiments.distracting.run import run

        run(config, folder, listeners, device)

    def describe(self, row: Mapping[str, Any]) -> str:
        """The returns on training and unseen videos."""
        return f"return {row['train_return']:.0f} on training videos, {row['test_return']:.0f} on unseen ones"

    def load(self, folder: RunFolder, config: DistractingConfig) -> ControlPolicy:
        """Loads the policy of a run."""
        from pisces.experiments.distracting.policy import load_policy

        return load_policy(folder, config)

    def evaluate(self, folder: RunFolder, config: DistractingConfig, **options: Any) -> Evaluation:
        """Plays episodes on training and unseen videos."""
        from pisces.experiments.distracting.data import TEST, TRAIN, evaluate, make_env

        policy, returns = self.load(folder, config), {}
        for videos, stream in (("train", TRAIN), ("test", TEST)):
            env = make_env(config, videos)
            returns[videos] = evaluate(config, env, policy, options["episodes"] or EPISODES, stream)
            env.close()
        rows = tuple(("training" if name == "train" else "unseen", *spread(v, ".1f")) for name, v in returns.items())
        values = {"config": config.as_dict(), **{f"{name}_returns": numbers for name, numbers in returns.items()}}
        return Evaluation(("videos", "episodes", "mean return", "smallest", "largest"), rows, values)

    def search_space(self, method: str) -> Space:
        """The weight of the policy similarity loss and the discount and scale of its metric; else the learning rate."""
        if method not in METHODS:
            raise unknown_name("method", method, METHODS)
        if method.endswith(SIMILARITY):
            return (
                Choice("coefficient", (0.1, 1.0, 10.0)),
                Choice("scale", (0.01, 0.1, 1.0)),
                Choice("metric_discount", (0.9, 0.99)),
            )
        return (Choice("learning_rate", (3e-4, 1e-3, 3e-3)),)

    def evaluations(self, config: DistractingConfig) -> int:
        """As the protocol says."""
        return config.protocol.evaluations

    def validation_score(self, config: DistractingConfig, folder: RunFolder, row: Mapping[str, Any]) -> float:
        """Plays episodes on validation videos with the newest checkpoint; the row, which has test data, is not read."""
        from pisces.experiments.distracting.data import validation_return

        return validation_return(config, folder)

    def cell(self, config: DistractingConfig) -> tuple[Any, ...] | None:
        """Preset and videos, initialization, method and task."""
        from pisces.experiments.distracting.tables import cell_of

        return cell_of(config)

    def published(self, config: DistractingConfig) -> Published | None:
        """The paper's return."""
        row = DISTRACTING.get((config.init, config.method), {})
        return None if self.cell(config) is None else row.get(config.task)

    def tables(self, runs: Sequence[StoredRun]) -> list[Table]:
        """Table 3, and returns on training beside unseen backgrounds."""
        from pisces.experiments.distracting.tables import distracting_tables

        return distracting_tables(runs)

    def figures(self, runs: Sequence[StoredRun]) -> dict[str, tuple[str, Figure]]:
        """Learning curves."""
        from pisces.experiments.distracting.figures import curve_figures

        return curve_figures(runs)

    def page_section(self, runs: Sequence[StoredRun], projection: str) -> PageSection:
        """Episodes without and with PSEs before an unseen video."""
        from pisces.experiments.distracting.episodes import page_section

        return page_section(runs)

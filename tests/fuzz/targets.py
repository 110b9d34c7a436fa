"""The kinds of files that the software reads, each with what it reads from them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fake_experiment import FAKE
from PIL import Image

from pisces.agents.checkpoint import load_checkpoint, save_checkpoint
from pisces.agents.drq.replay import Replay
from pisces.agents.drq.settings import DrQSettings
from pisces.envs.distracting.videos import ClipCache, find_videos
from pisces.experiments.distracting.data import PairStore, _write_pair, pair_path
from pisces.experiments.registry import all_experiments, evaluate_run, experiment
from pisces.metrics import FiniteMDP
from pisces.reports.results import read_runs
from pisces.runs.job import Job
from pisces.runs.search_space import Range
from pisces.runs.store import RunFolder
from pisces.runs.study import Study
from pisces.runs.tuning import TuningConfig
from pisces.trajectories import Trajectory

Answer = Any


@dataclass(frozen=True)
class Target:
    """One kind of file."""

    name: str
    """Its name."""
    make: Callable[[Path], None]
    """Writes the files into a folder."""
    read: Callable[[Path], Answer]
    """Reads them and returns the answer, which must not change unless the files are refused."""
    files: tuple[str, ...]
    """Which files to mutate (glob patterns)."""
    weight: float = 1.0
    """How often it is chosen."""
    agrees: Callable[[Answer, Answer], bool] = lambda new, old: new == old
    """Whether an answer is as good as the one before."""


def digest(arrays: dict[str, Any]) -> str:
    """The checksum of arrays by name."""
    found = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        values = np.asarray(array)
        found.update(f"{name} {values.dtype} {values.shape}".encode() + values.tobytes())
    return found.hexdigest()


def lqr_config(seed: int) -> Any:
    return experiment("lqr").make_config("psm", preset="smoke", seed=seed, distractors=20, changes={"width": 20})


def make_runs(folder: Path) -> None:
    for seed in (0, 1):
        Job(experiment("lqr"), lqr_config(seed)).run(folder)


def read_results(folder: Path) -> Answer:
    found = read_runs([folder], all_experiments())
    tables = [table.markdown() for table in experiment("lqr").tables(found.of("lqr"))] if found.runs else []
    return {run.config.seed: (run.setting, run.value, repr(run.result)) for run in found.runs}, found.skipped, tables


def results_agree(new: Answer, old: Answer) -> bool:
    """Results that are shown are unchanged, and the others are listed."""
    shown = all(old[0].get(seed) == value for seed, value in new[0].items())
    return shown and (len(new[0]) == len(old[0]) or bool(new[1]))


def read_run(folder: Path) -> Answer:
    job = Job(experiment("lqr"), lqr_config(0))
    run = job.folder(folder).create(job.config)
    return run.finished, run.read_metrics()


def run_agrees(new: Answer, old: Answer) -> bool:
    """An empty result.json, as a power failure leaves it, makes a run unfinished: it is resumed and written again."""
    return new == old or new == (False, old[1])


def read_agent(folder: Path) -> Answer:
    return evaluate_run(RunFolder.of(folder, lqr_config(0)).path, episodes=1).values["errors"]


def make_checkpoint(folder: Path) -> None:
    tensors = {"a": torch.arange(40.0).reshape(5, 8), "b": torch.arange(6)}
    save_checkpoint(folder / "checkpoint.safetensors", tensors, {"iteration": 3, "rng": [1, 2]})


def read_checkpoint(folder: Path) -> Answer:
    tensors, numbers = load_checkpoint(folder / "checkpoint.safetensors")
    return digest({name: value.numpy() for name, value in tensors.items()}), numbers


class ReplayFiles:
    """A replay with the checksum that its checkpoint would hold."""

    def __init__(self) -> None:
        self.digest, self.written = "", 0

    def make(self, folder: Path) -> None:
        replay, rng = Replay(folder / "replay", 20, 4, 3, 2), np.random.default_rng(0)
        replay.begin(rng.integers(0, 255, (4, 4, 3), np.uint8))
        for step in range(15):
            frame = rng.integers(0, 255, (4, 4, 3), np.uint8)
            replay.add(rng.random(2, np.float32), float(step), False, frame)
        self.written, self.digest = replay.flush(), replay.digest()

    def read(self, folder: Path) -> Answer:
        replay = Replay(folder / "replay", 20, 4, 3, 2, self.written, self.digest)
        return digest({"rows": replay._columns[: self.written], "frames": replay._frames[: self.written]})


def make_pairs(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for number in range(2):
        path = pair_path(folder, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        frames = rng.integers(0, 255, (2, 6, 4, 4, 3), np.uint8)
        actions = rng.random((6, 1), np.float32)
        _write_pair(path, {"frames_x": frames[0], "frames_y": frames[1], "actions": actions, "return": np.array(3.0)})


def read_pairs(folder: Path) -> Answer:
    store = PairStore(folder, 2, 3, DrQSettings(anchors=2, candidates=2), folder / "pairs.u8")
    actions = [episode.actions for group in store.pairs.groups for episode in group]
    return store.returns, digest({"frames": store._frames, "actions": np.stack(actions)})


def make_trajectory(folder: Path) -> None:
    rng = np.random.default_rng(0)
    policies = rng.random((9, 3))
    policies /= policies.sum(axis=1, keepdims=True)
    Trajectory(rng.random((9, 2)), rng.integers(0, 3, 9), policies, rng.random(9), terminated=False).save(
        folder / "x.npz"
    )


def dense_mdp() -> FiniteMDP:
    rng = np.random.default_rng(0)
    transitions = rng.random((5, 2, 5))
    return FiniteMDP(transitions / transitions.sum(axis=2, keepdims=True), rng.random((5, 2)))


def make_dense(folder: Path) -> None:
    mdp = dense_mdp()
    np.savez(folder / "x.npz", transitions=mdp.transitions.toarray().reshape(5, 2, 5), rewards=mdp.rewards)


def read_mdp(folder: Path) -> Answer:
    return digest(FiniteMDP.load(folder / "x.npz")._arrays())


STUDY = TuningConfig(
    FAKE, "fake", "smoke", (0,), (Range("x", 0, 1), Range("y", 1, 9, whole=True)), {}, {"iterations": 1}, pruner="none"
)


def make_study(folder: Path) -> None:
    Study(STUDY, folder).work(3)


def make_images(folder: Path) -> None:
    for number in range(2):
        path = folder / "clip" / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(np.random.default_rng(number).integers(0, 255, (6, 6, 3), np.uint8)).save(path)


def read_images(folder: Path) -> Answer:
    (source,) = find_videos(str(folder)).sources
    return ClipCache().get(source, 8).shape


REPLAY = ReplayFiles()
TARGETS = (
    Target("results", make_runs, read_results, ("lqr/**/result.json", "lqr/**/run.json"), 4, results_agree),
    Target("run folder", make_runs, read_run, (f"{RunFolder.of('.', lqr_config(0)).path}/*.[js]*",), 3, run_agrees),
    Target("agent", make_runs, read_agent, (f"{RunFolder.of('.', lqr_config(0)).path}/c*",), 1),
    Target("checkpoint", make_checkpoint, read_checkpoint, ("checkpoint.safetensors",), 3),
    Target("replay", REPLAY.make, REPLAY.read, ("replay/*",), 2),
    Target("pairs", make_pairs, read_pairs, ("*.npz",), 2),
    Target(
        "trajectory", make_trajectory, lambda folder: digest(Trajectory.load(folder / "x.npz").arrays()), ("*.npz",), 3
    ),
    Target("dense MDP", make_dense, read_mdp, ("*.npz",), 2),
    Target("sparse MDP", lambda folder: dense_mdp().save(folder / "x.npz"), read_mdp, ("*.npz",), 3),
    Target("study", make_study, lambda folder: Study(STUDY, folder).state(), ("**/study.db",), 0.3),
    Target("images", make_images, read_images, ("clip/*.png",), 1),
)

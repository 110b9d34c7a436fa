"""An experiment whose runs take a second; a module, so that worker processes can import it."""

import os
import time
from dataclasses import asdict, dataclass, field

from pisces.runs.job import Job
from pisces.runs.measure import Measure
from pisces.runs.progress import Progress
from pisces.runs.store import CHECKPOINT, SCHEMA, non_defaults

ITERATION_SECONDS = 0.1


@dataclass(frozen=True)
class FakeConfig:
    seed: int
    method: str = "fake"
    behavior: str = "good"
    iterations: int = 3
    needs: int | None = None
    changes: dict = field(default_factory=dict)

    experiment = "fake"

    def as_dict(self):
        return {"experiment": self.experiment, "schema": SCHEMA, **asdict(self)}

    def identity(self):
        return non_defaults(self)

    @property
    def label(self):
        return f"{self.method} {self.seed}"


class FakeExperiment:
    """The result of a run depends on its config alone, like that of a real one."""

    name = "fake"
    cpu_only = False
    score = Measure("validation", "validation score", "higher")

    def __reduce__(self):
        return "FAKE"

    def requirements(self, config):
        return () if config.needs is None else (FakeConfig(config.needs),)

    def run(self, config, folder, listeners, device):
        with folder.file("starts").open("a") as file:
            file.write("x")
        if config.behavior == "raise":
            raise RuntimeError("no luck")
        if config.behavior == "die" or (config.behavior == "die once" and not folder.file("died").exists()):
            folder.file("died").touch()
            os._exit(9)
        state = folder.file("state")
        done = int(state.read_text()) if state.exists() else 0
        for step in range(done, config.iterations):
            time.sleep(ITERATION_SECONDS)
            folder.file("state.new").write_text(str(step + 1))
            folder.file("state.new").replace(state)
            row = {"validation": config.seed * 10 + step + 1, "test": -1}
            for listener in listeners:
                listener(Progress(step + 1, config.iterations, evaluation=row))
        folder.file(CHECKPOINT).touch()
        folder.write_info({"device": device})
        folder.write_result(config, {"value": config.seed * 7, "validation": config.seed * 10 + 5, "test": -1})

    def make_config(self, method, *, preset, seed, changes, **options):
        behavior = changes.get("behavior", "good")
        return FakeConfig(seed, method, behavior, changes=dict(changes), **options)

    def evaluations(self, config):
        return config.iterations

    def validation_score(self, config, folder, row):
        return row["validation"] + config.changes.get("x", 0.0)


FAKE = FakeExperiment()


def fake_jobs(seeds, **arguments):
    return [Job(FAKE, FakeConfig(seed, **arguments)) for seed in seeds]

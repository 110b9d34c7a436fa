"""Run folders, `<root>/<experiment>/<method>/<hash of config>/`: a stop at any moment leaves them sound."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from importlib import metadata
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

import pisces
from pisces.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

LOCK = ".lock"
CONFIG, METRICS, CHECKPOINT, RUN_INFO, RESULT = (
    "config.json",
    "metrics.jsonl",
    "checkpoint.safetensors",
    "run.json",
    "result.json",
)


class LockedError(UserError):
    """Another process is busy with the run."""


class RunConfig(Protocol):
    """What the store asks of an experiment's config."""

    @property
    def method(self) -> str:
        """The method's name, which is part of the folder's path."""

    def as_dict(self) -> dict[str, Any]:
        """The whole config as nested JSON values."""

    def identity(self) -> dict[str, Any]:
        """The entries that differ from their defaults."""


def non_defaults(config: Any) -> dict[str, Any]:
    """Returns the fields of a dataclass that differ from their defaults, dataclasses within it alike."""
    values = {}
    for field in fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value):
            value = non_defaults(value)
        if value != field.default:
            values[field.name] = value
    return values


def changed_settings(config: Mapping[str, Any], *groups: str) -> list[str]:
    """The settings that a stored config's `study` names, as ``name=value``, from its groups of settings."""
    known = {name: value for group in groups or ("settings",) for name, value in config[group].items()}
    names = [item.partition("=")[0] for item in str(config.get("study") or "").split(",")]
    return [f"{name}={known[name]}" for name in names if name in known]


def config_hash(config: RunConfig) -> str:
    """Returns the name of a config: the start of the SHA-256 of its identity as canonical JSON."""
    canonical = json.dumps(config.identity(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def write_atomically(path: Path, text: str) -> None:
    """Writes a file that other processes see either whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())  # or a power cut could leave the new name with nothing in it
    temporary.replace(path)


@dataclass(frozen=True)
class RunFolder:
    """The files of one run."""

    path: Path
    """The folder itself."""

    @classmethod
    def open(cls, root: str | Path, experiment: str, method: str, config: RunConfig) -> RunFolder:
        """Creates the config's folder, or finds it again; refuses a folder that holds something else."""
        path = Path(root) / experiment / method / config_hash(config)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise UserError(f"expected an output folder, got {str(root)!r}, which is or lies in a file") from error
        except OSError as error:
            raise UserError(f"expected a folder that can be written to, got {str(path)!r}: {error.strerror}") from error
        folder = cls(path)
        if not folder.file(CONFIG).exists():
            write_atomically(folder.file(CONFIG), json.dumps(config.as_dict(), indent=1, sort_keys=True) + "\n")
        elif not _agrees(folder.read_json(CONFIG), config.as_dict()):
            raise UserError(
                f"expected the run of this config in {str(path)!r}, got another config; choose another --out"
            )
        return folder

    def file(self, name: str) -> Path:
        """Returns the path of a file of the run."""
        return self.path / name

    def read_json(self, name: str) -> dict[str, Any]:
        """Reads one of the run's JSON files."""
        try:
            content = json.loads(self.file(name).read_text())
        except (OSError, ValueError) as error:
            raise UserError(
                f"expected readable JSON in {str(self.file(name))!r}, got a missing or damaged file"
            ) from error
        if not isinstance(content, dict):
            raise UserError(f"expected a JSON object in {str(self.file(name))!r}, got {type(content).__name__}")
        return content

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps other processes out while the run is under way; the system lets go of it when the process ends."""
        with self.file(LOCK).open("a") as file:
            if not _try_lock(file):
                raise LockedError(
                    f"expected the run {str(self.path)!r} to be free, got one that is under way elsewhere"
                )
            yield

    def finish_by(self, work: Callable[[], None]) -> None:
        """Does the work that finishes the run, alone at it; nothing if the run is finished."""
        if self.finished:
            return
        with self.lock():
            # Another process may have finished the run between the two looks.
            if not self.finished:
                work()

    def locked(self) -> bool:
        """Whether a process is busy with the run."""
        if not self.file(LOCK).exists():
            return False
        with self.file(LOCK).open("a") as file:
            return not _try_lock(file)

    @property
    def finished(self) -> bool:
        """Whether the run has a result; an empty file, which a power cut may leave, is none."""
        return self.file(RESULT).exists() and self.file(RESULT).stat().st_size > 0

    def write_result(self, result: Mapping[str, Any]) -> None:
        """Writes the result, last and atomically."""
        write_atomically(self.file(RESULT), json.dumps(result, indent=None, sort_keys=True) + "\n")

    def write_info(self, info: Mapping[str, Any]) -> None:
        """Writes what depends on time and machine: versions, processor, and what `info` adds."""
        write_atomically(self.file(RUN_INFO), json.dumps({**machine_info(), **info}, indent=1, sort_keys=True) + "\n")

    def append_metrics(self, row: Mapping[str, Any]) -> None:
        """Adds a line to the metrics."""
        with self.file(METRICS).open("a") as file:
            file.write(json.dumps(row, sort_keys=True) + "\n")
            file.flush()
            os.fsync(file.fileno())  # or a power cut could take the line and leave the checkpoint that follows it

    def read_metrics(self) -> list[dict[str, Any]]:
        """Reads the whole lines of the metrics; a line cut off by a stop is left out."""
        if not self.file(METRICS).exists():
            return []
        lines = self.file(METRICS).read_text().split("\n")[:-1]
        try:
            return [json.loads(line) for line in lines if line]
        except ValueError as error:
            raise UserError(
                f"expected lines of JSON in {str(self.file(METRICS))!r}, got a damaged file; "
                "delete the run's folder to start it anew"
            ) from error

    def keep_metrics(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replaces the metrics, e.g. by those up to the checkpoint that a run goes on from."""
        write_atomically(self.file(METRICS), "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows))

    def save_checkpoint(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Writes tensors and numbers atomically."""
        from pisces.agents.checkpoint import save_checkpoint  # imports torch, which reading results must not need

        save_checkpoint(self.file(CHECKPOINT), tensors, numbers)

    def load_checkpoint(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Reads the checkpoint, or None if there is none."""
        from pisces.agents.checkpoint import load_checkpoint  # as above

        return load_checkpoint(self.file(CHECKPOINT)) if self.file(CHECKPOINT).exists() else None


def machine_info() -> dict[str, Any]:
    """Says which software and processor a run used."""
    packages = ("torch", "numpy", "numba")
    return {
        "pisces": pisces.__version__,
        "python": sys.version.split()[0],
        "processor": _processor_name(),
        "cores": os.cpu_count(),
        "versions": {name: metadata.version(name) for name in packages},
    }


def _processor_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _agrees(stored: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    """Whether a stored config, perhaps of a version with fewer settings, is the given one."""
    for name, value in stored.items():
        other = config.get(name)
        if isinstance(value, dict) and isinstance(other, Mapping):
            if not _agrees(value, other):
                return False
        elif json.dumps(value) != json.dumps(other):
            return False
    return True

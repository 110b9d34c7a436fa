"""Run folders, `<root>/<experiment>/<method>/<hash of config>/`.

All files but metrics.jsonl are written atomically and result.json last, so that a run can be killed at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from pisces.errors import UserError
from pisces.runs.lock import Lock
from pisces.runs.machine import machine_info

if TYPE_CHECKING:
    from torch import Tensor

SCHEMA = 2
"""The version of the format of config.json and result.json; files without a version have the first."""
MIGRATE = "python studies/migrate_results.py"
"""The command that brings folders up to date."""
LOCK, TEMPORARY = ".lock", ".tmp-"
CONFIG, METRICS, CHECKPOINT, RUN_INFO, RESULT = (
    "config.json",
    "metrics.jsonl",
    "checkpoint.safetensors",
    "run.json",
    "result.json",
)


class StoredConfig(Protocol):
    """What a folder asks of the config that names it."""

    @property
    def method(self) -> str:
        """The name of the method, which is part of the path."""

    def as_dict(self) -> dict[str, Any]:
        """Returns the whole config as nested JSON values, with the entries "experiment", "schema" and "method"."""

    def identity(self) -> dict[str, Any]:
        """Returns the entries that differ from their defaults, which name the folder."""


class RunConfig(StoredConfig, Protocol):
    """What the store asks of the config of a run."""

    @property
    def experiment(self) -> str:
        """The name of the experiment, which is part of the path."""


def non_defaults(config: Any) -> dict[str, Any]:
    """Returns the fields of a dataclass that differ from their defaults, recursively."""
    values = {}
    for field in fields(config):
        value = getattr(config, field.name)
        if is_dataclass(value):
            value = non_defaults(value)
        if value != field.default:
            values[field.name] = value
    return values


def config_hash(config: StoredConfig) -> str:
    """Returns the first 12 hexadecimal digits of the SHA-256 of the identity of a config as canonical JSON."""
    canonical = json.dumps(config.identity(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def write_atomically(path: Path, text: str) -> None:
    """Writes a file that other processes see either whole or not at all."""
    # Process ids are unique neither across machines nor across containers that share a disk.
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(temporary, flags, 0o644)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # or a power failure could leave the new name with nothing in it
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@dataclass(frozen=True)
class RunFolder:
    """The files of one run."""

    path: Path
    """The folder."""

    @classmethod
    def of(cls, root: str | Path, config: StoredConfig) -> Self:
        """Returns the folder of a config below `root`; creates nothing."""
        return cls(Path(root) / config.as_dict()["experiment"] / config.method / config_hash(config))

    @property
    def root(self) -> Path:
        """The root of the run folders that this one is below."""
        return self.path.parents[2]

    def create(self, config: StoredConfig) -> Self:
        """Creates the folder with its config.json, or checks that the config.json there agrees with the config."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise UserError(f"{str(self.path)!r} is or lies in a file; choose another output folder") from error
        except OSError as error:
            raise UserError(f"cannot create {str(self.path)!r}: {error.strerror}") from error
        if not self.file(CONFIG).exists():
            write_atomically(self.file(CONFIG), json.dumps(config.as_dict(), indent=1, sort_keys=True) + "\n")
        elif not _agrees(self.read_config(), config.as_dict()):
            raise UserError(f"{str(self.path)!r} holds the run of another config; choose another output folder")
        return self

    @property
    def finished(self) -> bool:
        """Whether the run has a result; an empty file, which a power failure may leave, does not count."""
        try:
            return self.file(RESULT).stat().st_size > 0
        except OSError:  # there is no result, nor perhaps a folder
            return False

    @property
    def busy(self) -> bool:
        """Whether a process works on the run; see `pisces.runs.lock.Lock.busy`."""
        return self._lock.busy

    def lock(self) -> AbstractContextManager[None]:
        """Returns a context in which no other process can work on the run.

        Raises:
            LockedError: if another process works on it.
        """
        return self._lock.hold()

    @property
    def _lock(self) -> Lock:
        return Lock(self.file(LOCK), f"the run {str(self.path)!r}")

    def finish_by(self, work: Callable[[], None]) -> bool:
        """Calls `work`, which finishes the run, with the lock held; does nothing if the run is finished.

        Returns:
            Whether `work` was called.
        """
        if self.finished:
            return False
        with self.lock():
            if self.finished:  # by another process in the meantime
                return False
            for left in self.path.glob(f"{TEMPORARY}*"):  # by a process that was killed
                left.unlink(missing_ok=True)
            work()
            return True

    def file(self, name: str) -> Path:
        """Returns the path of a file of the run."""
        return self.path / name

    def read_json(self, name: str) -> dict[str, Any]:
        """Reads a JSON file of the run."""
        path = self.file(name)
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise UserError(f"{str(path)!r} is missing or damaged: expected readable JSON") from error
        if not isinstance(content, dict):
            raise UserError(f"{str(path)!r} is damaged: expected a JSON object, got {type(content).__name__}")
        return content

    def read_config(self) -> dict[str, Any]:
        """Reads config.json and checks its schema."""
        return self._read_stored(CONFIG)

    def read_result(self) -> dict[str, Any]:
        """Reads result.json and checks its schema."""
        return self._read_stored(RESULT)

    def _read_stored(self, name: str) -> dict[str, Any]:
        content = self.read_json(name)
        check_schema(content, self.file(name))
        return content

    def write_result(self, config: RunConfig, values: Mapping[str, Any]) -> None:
        """Writes result.json, which marks the run as finished: the config, and the values beside it."""
        result = {"experiment": config.experiment, "schema": SCHEMA, "config": config.as_dict(), **values}
        try:
            text = json.dumps(result, sort_keys=True, allow_nan=False)
        except ValueError as error:
            raise UserError(f"the result of {str(self.path)!r} cannot be stored as JSON: {error}") from error
        write_atomically(self.file(RESULT), text + "\n")

    def write_info(self, info: Mapping[str, Any]) -> None:
        """Writes run.json, which depends on time and machine: versions, CPU, and what `info` adds."""
        write_atomically(self.file(RUN_INFO), json.dumps({**machine_info(), **info}, indent=1, sort_keys=True) + "\n")

    def append_metrics(self, row: Mapping[str, Any]) -> None:
        """Appends a line to metrics.jsonl."""
        with self.file(METRICS).open("a") as file:
            file.write(json.dumps(row, sort_keys=True) + "\n")
            file.flush()
            os.fsync(file.fileno())  # or a power failure could lose the line, but not the checkpoint that follows

    def read_metrics(self) -> list[dict[str, Any]]:
        """Reads the lines of metrics.jsonl, without a last line that is incomplete because the run was killed."""
        if not self.file(METRICS).exists():
            return []
        lines = self.file(METRICS).read_text().split("\n")[:-1]
        try:
            return [json.loads(line) for line in lines if line]
        except ValueError as error:
            raise UserError(
                f"{str(self.file(METRICS))!r} is damaged: expected JSON lines; delete the folder to start the run over"
            ) from error

    def keep_metrics(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replaces the lines of metrics.jsonl, e.g. by those before the checkpoint that a run resumes from."""
        write_atomically(self.file(METRICS), "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows))

    def save_checkpoint(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Writes checkpoint.safetensors."""
        from pisces.agents.checkpoint import save_checkpoint  # imports torch, which reading results must not need

        save_checkpoint(self.file(CHECKPOINT), tensors, numbers)

    def read_checkpoint(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Reads checkpoint.safetensors; raises if the run has none."""
        checkpoint = self.load_checkpoint()
        if checkpoint is None:
            hint = "committed results have none; train the run again" if self.finished else "train the run first"
            raise UserError(f"no checkpoint in {str(self.path)!r}: {hint}")
        return checkpoint

    @contextmanager
    def checkpoint_errors(self) -> Iterator[None]:
        """Turns errors of restoring an agent into one that names the folder."""
        try:
            yield
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())  # torch reports it in several lines
            raise UserError(f"the checkpoint in {str(self.path)!r} does not fit its config: {reason}") from error

    def load_checkpoint(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Reads checkpoint.safetensors; returns None if the run has none."""
        from pisces.agents.checkpoint import load_checkpoint  # as above

        return load_checkpoint(self.file(CHECKPOINT)) if self.file(CHECKPOINT).exists() else None


def check_schema(content: Mapping[str, Any], path: Path) -> None:
    """Raises unless a stored config or result has the schema of this version."""
    schema = content.get("schema", 1)
    if schema != SCHEMA:
        newer = isinstance(schema, int) and schema > SCHEMA
        age, remedy = ("a newer", "update pisces") if newer else ("an earlier", f"run: {MIGRATE} <folder of runs>")
        raise UserError(f"{path} was written by {age} version (schema {schema}); {remedy}")


def _agrees(stored: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    """Whether a stored config equals the given one in its own entries; later versions may have added others."""
    for name, value in stored.items():
        other = config.get(name)
        if isinstance(value, dict) and isinstance(other, Mapping):
            if not _agrees(value, other):
                return False
        elif json.dumps(value) != json.dumps(other):
            return False
    return True

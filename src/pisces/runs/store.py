"""Run folders, `<root>/<experiment>/<method>/<hash of config>/`.

All files but metrics.jsonl are written atomically and result.json last, so that a run can be killed at any time.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from pisces import files
from pisces.errors import UserError
from pisces.files import READ_ERRORS, TEMPORARY, CheckedRows, read_bytes, write_atomically
from pisces.runs.lock import Lock, LockedError
from pisces.runs.machine import machine_info

if TYPE_CHECKING:
    from torch import Tensor

SCHEMA = 2
"""The version of the format of config.json and result.json; files without a version have the first."""
MIGRATE = "python studies/migrate_results.py"
"""The command that brings folders up to date."""
LOCK = ".lock"
CONFIG, METRICS, CHECKPOINT = "config.json", "metrics.jsonl", "checkpoint.safetensors"
RUN_INFO, RESULT = "run.json", "result.json"
RESULT_SUM = "result_sha256"
"""The entry of run.json with the checksum of result.json."""
METRICS_SUM = "metrics.sha256"
"""The checksum of metrics.jsonl."""
RETRAINED = "retrained"
"""The folder of the same run within a run folder that has a result but no checkpoint."""
ERROR, REPLAY, PAIRS_UNPACKED = "error.txt", "replay", "pairs.u8"
"""What an unfinished run may have beside these: the error that ended it, and large files that it works with."""
START_OVER = "delete the folder to start the run over"
REMEDIES = {CONFIG: START_OVER, RESULT: "delete it and run the command again"}
"""What to do about damaged files."""


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

    @property
    def with_agent(self) -> RunFolder:
        """The folder where other runs find this run's agent, trained or to be trained.

        It is this folder, or one within it if this one has a result but no checkpoint, as committed results.
        """
        lost = self.file(RESULT).exists() and not self.file(CHECKPOINT).exists()
        return RunFolder(self.file(RETRAINED)) if lost else self

    def create(self, config: StoredConfig) -> Self:
        """Creates the folder with its config.json, or checks that the config.json there agrees with the config."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise UserError(f"{str(self.path)!r} is or lies in a file; choose another output folder") from error
        except OSError as error:
            raise UserError(f"cannot create {str(self.path)!r}: {error.strerror}") from error
        if not self.file(CONFIG).exists():
            # A process that holds the lock may take the temporary file for a leftover, but wrote the config before.
            with suppress(FileNotFoundError):
                write_atomically(self.file(CONFIG), json.dumps(config.as_dict(), indent=1, sort_keys=True) + "\n")
        if not _agrees(self.read_config(), config.as_dict()):
            raise UserError(f"{str(self.path)!r} holds the run of another config; choose another output folder")
        return self

    @property
    def finished(self) -> bool:
        """Whether the run has a result; an empty file, which a power failure may leave, does not count.

        Raises:
            UserError: if the result is damaged.
        """
        try:
            if self.file(RESULT).stat().st_size == 0:
                return False
        except OSError:  # there is no result, nor perhaps a folder
            return False
        self.read_result()
        return True

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
            self.remove_leftovers()
            return False
        with self.lock():
            if self.finished:  # by another process in the meantime
                return False
            files.remove(self.path.glob(f"{TEMPORARY}*"))
            work()
            files.remove(self._leftovers())
            return True

    def remove_leftovers(self) -> None:
        """Removes what a process that was killed left of a finished run, unless another process works on it."""
        if self._leftovers():
            with suppress(LockedError, OSError), self.lock():  # the second on a read-only disk
                files.remove(self._leftovers())

    def _leftovers(self) -> list[Path]:
        known = (self.file(name) for name in (ERROR, REPLAY, PAIRS_UNPACKED))
        return [*self.path.glob(f"{TEMPORARY}*"), *(path for path in known if path.exists())]

    def file(self, name: str) -> Path:
        """Returns the path of a file of the run."""
        return self.path / name

    def read_json(self, name: str) -> dict[str, Any]:
        """Reads a JSON file of the run."""
        path = self.file(name)
        remedy = f"; {REMEDIES[name]}" if name in REMEDIES and path.exists() else ""
        try:
            content = files.read_json(path)
        except READ_ERRORS as error:
            raise UserError(f"{str(path)!r} is missing or damaged: expected readable JSON{remedy}") from error
        if not isinstance(content, dict):
            raise UserError(f"{str(path)!r} is damaged: expected a JSON object, got {type(content).__name__}{remedy}")
        return content

    def read_config(self) -> dict[str, Any]:
        """Reads config.json and checks its schema."""
        return self._read_stored(CONFIG)

    def read_result(self) -> dict[str, Any]:
        """Reads result.json and checks its schema and checksum."""
        result = self._read_stored(RESULT)
        verify_result(self.file(RESULT), read_bytes(self.file(RESULT)))
        return result

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
        digest = hashlib.sha256(f"{text}\n".encode()).hexdigest()
        info = self.read_json(RUN_INFO) if self.file(RUN_INFO).exists() else {}
        write_atomically(self.file(RUN_INFO), json.dumps({**info, RESULT_SUM: digest}, indent=1, sort_keys=True) + "\n")
        write_atomically(self.file(RESULT), text + "\n")

    def write_info(self, info: Mapping[str, Any]) -> None:
        """Writes run.json, which depends on time and machine: versions, CPU, and what `info` adds."""
        write_atomically(self.file(RUN_INFO), json.dumps({**machine_info(), **info}, indent=1, sort_keys=True) + "\n")

    def append_metrics(self, row: Mapping[str, Any]) -> None:
        """Appends a line to metrics.jsonl; a row with NaN or infinity is refused, since the run has diverged."""
        wrong = [name for name, value in row.items() if isinstance(value, float) and not math.isfinite(value)]
        if wrong:
            raise UserError(
                f"the run {str(self.path)!r} diverged: {wrong[0]} is {row[wrong[0]]}; "
                "choose other settings, e.g. a lower learning rate"
            )
        self._metrics.append(row)

    def read_metrics(self) -> list[dict[str, Any]]:
        """Reads the lines of metrics.jsonl, without what a killed process wrote after the last checksum."""
        return self._metrics.read()

    def keep_metrics(self, name: str, last: float) -> None:
        """Drops the lines of metrics.jsonl that a run repeats: from the first whose value of `name` is above `last`."""
        self._metrics.keep(name, last)

    @property
    def _metrics(self) -> CheckedRows:
        return CheckedRows(self.file(METRICS), self.file(METRICS_SUM), START_OVER)

    def save_checkpoint(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Writes checkpoint.safetensors."""
        from pisces.agents.checkpoint import save_checkpoint  # imports torch, which reading results must not need

        save_checkpoint(self.file(CHECKPOINT), tensors, numbers)

    def read_checkpoint(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Reads checkpoint.safetensors; raises if the run has none."""
        checkpoint = self.load_checkpoint()
        if checkpoint is None:
            again = "committed results have none; train the run again with another --out"
            hint = again if self.finished else "train the run first"
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


def verify_result(path: Path, content: bytes) -> None:
    """Raises if a result has another checksum than run.json beside it; earlier versions recorded none."""
    if files.recorded_value(path.with_name(RUN_INFO), RESULT_SUM) not in (None, hashlib.sha256(content).hexdigest()):
        raise UserError(f"{str(path)!r} is damaged: its checksum in {RUN_INFO} differs; {REMEDIES[RESULT]}")


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

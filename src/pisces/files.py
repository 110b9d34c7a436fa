"""Files that several processes share, and files that may be damaged or made by strangers."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import sqlite3
import stat
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pisces.errors import UserError

TEMPORARY = ".tmp-"
"""How the names of files begin that are not complete yet."""
MOST_BYTES = 2**27
"""The largest JSON file that is read; what it holds takes ten times as much memory."""
READ_ERRORS = (OSError, ValueError, RecursionError)
"""What reading a damaged JSON file may raise; the first also for files that are missing."""


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Opens a file for writing that other processes see either whole, at the end of the context, or not at all."""
    # Process ids are unique neither across machines nor across containers that share a disk.
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(temporary, flags, 0o666)  # of which the system takes the umask away, as `open` does
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # or a power failure could leave the new name with nothing in it
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_atomically(path: Path, text: str) -> None:
    """Writes a file that other processes see either whole or not at all."""
    with replacing(path) as file:
        file.write(text.encode())


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """Reads a regular file of at most so many bytes; a pipe, which could block forever, is refused.

    Raises:
        OSError: if the file cannot be read.
        UserError: if it is no regular file or too large.
    """
    # Opening a pipe would wait for a writer without O_NONBLOCK, which regular files ignore.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise UserError(f"{str(path)!r} is not a regular file")
        if status.st_size > most:
            raise UserError(f"{str(path)!r} has {status.st_size} bytes; at most {most} are read")
        return file.read(most)


def read_json(path: Path) -> Any:
    """Reads a JSON file; raises one of `READ_ERRORS` if it cannot be read."""
    return json.loads(read_bytes(path).decode("utf-8"))


def recorded_value(path: Path, name: str) -> Any:
    """Returns an entry of a JSON object in a file, None if there is none or the file cannot be read."""
    try:
        content = read_json(path)
    except READ_ERRORS:
        return None
    return content.get(name) if isinstance(content, dict) else None


@dataclass(frozen=True)
class CheckedRows:
    """Rows of JSON in a file to which they are appended, and a checksum in a file beside it."""

    path: Path
    """The file of the rows, one per line."""
    checksum: Path
    """The file of the checksum: SHA-256, and of how many bytes of the rows. Earlier versions wrote none."""
    remedy: str
    """What to do if the files are damaged, for the error."""

    def append(self, row: Mapping[str, Any]) -> None:
        """Appends a row, which counts once the checksum, written next, covers it."""
        with self.path.open("ab") as file:
            file.write(_line(row))
            file.flush()
            os.fsync(file.fileno())  # or a power failure could lose the row, but not what is written next
        self._write_checksum(self.path.read_bytes())

    def read(self) -> list[dict[str, Any]]:
        """Reads the rows, without what a killed process wrote after the last checksum."""
        try:
            return [_row(line) for line in self._checked_lines().split(b"\n") if line]
        except READ_ERRORS as error:
            raise self._damaged() from error

    def keep(self, name: str, last: float) -> None:
        """Drops all rows from the first one whose value of `name` is above `last`."""
        rows = self.read()
        try:
            kept = b"".join(_line(row) for row in itertools.takewhile(lambda row: row[name] <= last, rows))
        except (KeyError, TypeError) as error:
            raise self._damaged() from error
        self._write_checksum(kept)  # first: it fits the old lines too, which begin with those that are kept
        write_atomically(self.path, kept.decode())

    def _checked_lines(self) -> bytes:
        lines = read_bytes(self.path) if self.path.exists() else b""
        if not self.checksum.exists():
            return lines[: lines.rfind(b"\n") + 1]
        digest, size = read_bytes(self.checksum).split()
        if hashlib.sha256(lines[: int(size)]).hexdigest().encode() != digest:
            raise ValueError("the checksum does not fit the lines")
        return lines[: int(size)]

    def _write_checksum(self, lines: bytes) -> None:
        write_atomically(self.checksum, f"{hashlib.sha256(lines).hexdigest()} {len(lines)}\n")

    def _damaged(self) -> UserError:
        return UserError(f"{str(self.path)!r} is damaged; {self.remedy}")


def _line(row: Mapping[str, Any]) -> bytes:
    return (json.dumps(row, sort_keys=True) + "\n").encode()


def _row(line: bytes) -> dict[str, Any]:
    row = json.loads(line.decode())
    if not isinstance(row, dict):
        raise ValueError(f"expected a JSON object, got {type(row).__name__}")
    return row


def check_free_space(folder: Path, what: str, size: int, remedy: str) -> None:
    """Raises if a file of so many bytes does not fit on the folder's disk: writing to a map on a full disk is fatal."""
    free = shutil.disk_usage(folder).free
    if size > free:
        raise UserError(
            f"{what} in {str(folder)!r} needs {size / 1e9:.3g} GB, but {free / 1e9:.3g} GB are free; {remedy}"
        )


def remove(paths: Iterable[Path]) -> None:
    """Removes files and folders, as far as they are there and can be removed."""
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()


def check_database(path: Path) -> None:
    """Raises ValueError or sqlite3.Error if an SQLite file is damaged."""
    with closing(sqlite3.connect(path, timeout=120)) as connection:
        (answer,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if answer != "ok":
        raise ValueError(answer)


def printable(text: str, most: int = 300) -> str:
    """Shortens text from files and escapes what a terminal could take for a command."""
    shown = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."

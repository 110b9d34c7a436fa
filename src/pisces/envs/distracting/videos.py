"""Video backgrounds: the built-in clips, DAVIS 2017, or any folder of image sequences and video files."""

from __future__ import annotations

import io
import re
import struct
import subprocess
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.envs.distracting.textures import Clip, moving_texture
from pisces.errors import UserError, import_extra
from pisces.files import read_bytes

TRAIN_CLIPS, TEST_CLIPS, VALIDATION_CLIPS = 2, 30, 10
TEST_SEED, VALIDATION_SEED = 1_000_000, 2_000_000
"""Seeds of the built-in test and validation clips start here, those of the training clips at 0."""
MEMORY_BUDGET = 512 * 2**20
"""Bytes of decoded clips that a process keeps in memory."""
FRAME_LIMIT = 200
"""Largest number of frames read from one video."""
DAVIS_TRAIN = ("bear", "bmx-bumps")
_DAVIS_VALIDATION = """
bike-packing blackswan bmx-trees breakdance camel car-roundabout car-shadow cows dance-twirl dog dogs-jump
drift-chicane drift-straight goat gold-fish horsejump-high india judo kite-surf lab-coat libby loading
mbike-trick motocross-jump paragliding-launch parkour pigs scooter-black shooting soapbox
"""
DAVIS_TEST = tuple(_DAVIS_VALIDATION.split())
"""The 30 validation videos of DAVIS 2017."""
DAVIS_FRAMES = Path("JPEGImages") / "480p"
IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".bmp", ".webp")
VIDEO_ENDINGS = (".mp4", ".avi", ".mov", ".mkv", ".webm", ".gif")


@dataclass(frozen=True)
class Videos:
    """A list of clips that can be loaded one by one."""

    names: tuple[str, ...]
    """Names of the clips."""
    sources: tuple[int | tuple[Path, ...], ...]
    """Source of each clip: a seed, the images of a sequence, or one video file."""

    def __len__(self) -> int:
        return len(self.sources)

    def load(self, index: int, size: int) -> Clip:
        """Returns a clip, uint8 [frames, size, size, 3]; decoded clips are cached."""
        return _cache.get(self.sources[index], size)


def find_videos(videos: str | Path, davis: str | Path | None = None, count: int | None = None) -> Videos:
    """Finds the clips that `videos` refers to.

    Args:
        videos: "train", "test" or "validation" (for choosing settings) for the built-in clips, or a folder.
        davis: a DAVIS 2017 folder; "train" and "test" then mean the paper's lists of its videos, and "validation" the
            last 10 that are in neither.
        count: number of training clips; the paper's 2 if None. Folders and "test" are used whole.
    """
    if davis is not None and videos in ("train", "test", "validation"):
        return _davis_videos(Path(davis), str(videos), count)
    if videos == "train":
        return _built_in("train", 0, TRAIN_CLIPS if count is None else count)
    if videos == "test":
        return _built_in("test", TEST_SEED, TEST_CLIPS)
    if videos == "validation":
        return _built_in("validation", VALIDATION_SEED, VALIDATION_CLIPS)
    return _folder_videos(Path(videos))


def _built_in(name: str, first: int, count: int) -> Videos:
    return Videos(tuple(f"{name}-{k}" for k in range(count)), tuple(range(first, first + count)))


def _davis_videos(root: Path, split: str, count: int | None) -> Videos:
    folder = root / DAVIS_FRAMES
    if not folder.is_dir():
        raise UserError(f"the DAVIS folder {str(folder)!r} does not exist")
    others = sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name not in DAVIS_TEST)
    train = list(DAVIS_TRAIN) if count is None else others[:count]
    spare = [name for name in others if name not in train][-VALIDATION_CLIPS:]
    if split == "validation" and not spare:
        raise UserError(f"{str(folder)!r} has no DAVIS videos to validate on besides training and test videos")
    names = {"train": train, "test": list(DAVIS_TEST), "validation": spare}[split]
    missing = [name for name in names if not (folder / name).is_dir()]
    if missing or not names:
        raise UserError(f"the DAVIS video {(missing or ['bear'])[0]!r} is missing in {str(folder)!r}")
    return Videos(tuple(names), tuple(_images(folder / name) for name in names))


def _folder_videos(folder: Path) -> Videos:
    if not folder.is_dir():
        raise UserError(f"expected videos to be train, test, validation or a folder, got {str(folder)!r}")
    if (folder / DAVIS_FRAMES).is_dir():
        folder = folder / DAVIS_FRAMES
    found: dict[str, tuple[Path, ...]] = {}
    for path in sorted(folder.iterdir()):
        if path.is_dir() and _list_images(path):
            found[path.name] = _images(path)
        elif path.suffix.lower() in VIDEO_ENDINGS:
            found[path.name] = (path,)
    if not found and _list_images(folder):
        found[folder.name] = _images(folder)
    if not found:
        raise UserError(f"{str(folder)!r} contains neither video files nor folders of images")
    return Videos(tuple(found), tuple(found.values()))


def _list_images(folder: Path) -> list[Path]:
    return sorted((path for path in folder.iterdir() if path.suffix.lower() in IMAGE_ENDINGS), key=_by_number)


def _by_number(path: Path) -> list[tuple[int, str]]:
    """Sort key that puts 2.png before 10.png."""
    parts = re.split(r"(\d+)", path.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _images(folder: Path) -> tuple[Path, ...]:
    images = _list_images(folder)
    if not images:
        raise UserError(f"{str(folder)!r} contains no images")
    return tuple(images[:FRAME_LIMIT])


class ClipCache:
    """Cache of decoded clips that evicts the least recently used ones.

    Args:
        budget: bytes to keep; the clip used last is kept even if it is larger.
    """

    def __init__(self, budget: int = MEMORY_BUDGET) -> None:
        self.budget = budget
        self._clips: OrderedDict[tuple[Any, int], Clip] = OrderedDict()

    def get(self, source: int | tuple[Path, ...], size: int) -> Clip:
        """Returns a clip in a size; generates or decodes it if it is not cached."""
        key = (source, size)
        if key not in self._clips:
            self._clips[key] = moving_texture(source, size) if isinstance(source, int) else _decode(source, size)
            self._clips[key].flags.writeable = False
        self._clips.move_to_end(key)
        while self.size() > self.budget and len(self._clips) > 1:
            self._clips.popitem(last=False)
        return self._clips[key]

    def size(self) -> int:
        """Returns the number of bytes in the cache."""
        return sum(clip.nbytes for clip in self._clips.values())


_cache = ClipCache()


def _decode(paths: Sequence[Path], size: int) -> Clip:
    if len(paths) == 1 and paths[0].suffix.lower() in VIDEO_ENDINGS:
        return _decode_video(paths[0], size)
    pillow = import_extra("PIL.Image", "control")
    frames = []
    for path in paths:
        try:
            with pillow.open(io.BytesIO(read_bytes(path))) as image:  # a pipe would block
                frames.append(_resize(np.asarray(image.convert("RGB")), size))
        except (OSError, SyntaxError, ValueError, EOFError, struct.error, pillow.DecompressionBombError) as error:
            raise UserError(f"the image {str(path)!r} is damaged; remove or replace it") from error
    return np.stack(frames)


def _decode_video(path: Path, size: int) -> Clip:
    if not path.is_file():
        raise UserError(f"the video {str(path)!r} is not a file; remove or replace it")
    ffmpeg = import_extra("imageio_ffmpeg", "control").get_ffmpeg_exe()
    command = [ffmpeg, "-loglevel", "error", "-i", str(path), "-frames:v", str(FRAME_LIMIT)]
    command += ["-vf", f"scale={size}:{size}", "-pix_fmt", "rgb24", "-f", "rawvideo", "-"]
    result = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    frames = len(result.stdout) // (3 * size * size)
    if result.returncode or not frames:
        raise UserError(f"the video {str(path)!r} is damaged; remove or replace it")
    return np.frombuffer(result.stdout, np.uint8, frames * 3 * size * size).reshape(frames, size, size, 3)


def _resize(frame: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    pillow = import_extra("PIL.Image", "control")
    return np.asarray(pillow.fromarray(frame).resize((size, size), pillow.Resampling.BILINEAR))

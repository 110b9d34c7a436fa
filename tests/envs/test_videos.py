import sys

import numpy as np
import pytest
from PIL import Image

from pisces.envs.distracting.textures import moving_texture
from pisces.envs.distracting.videos import DAVIS_TEST, ClipCache, find_videos
from pisces.errors import MissingExtraError


def write_images(folder, count=3, value=0):
    folder.mkdir(parents=True)
    for k in range(count):
        Image.new("RGB", (20, 10), (value, 40 * k, 0)).save(folder / f"{k:05d}.png")


def test_built_in_clips_are_deterministic_and_differ():
    clip = moving_texture(3, 24, 8)
    assert clip.shape == (8, 24, 24, 3)
    assert np.array_equal(clip, moving_texture(3, 24, 8))
    assert not np.array_equal(clip, moving_texture(4, 24, 8))
    assert clip.std() > 10
    # Neighboring frames are close, distant ones are not: the clip moves smoothly.
    change = np.abs(np.diff(clip.astype(int), axis=0)).mean()
    assert 0 < change < np.abs(clip[-1].astype(int) - clip[0]).mean()


@pytest.mark.parametrize("seed", [0, 1, 1_000_000])
def test_built_in_clips_are_the_same_pictures_at_every_size(seed):
    large, small = moving_texture(seed, 144, 4), moving_texture(seed, 48, 4)
    for frame in range(4):
        shrunk = np.asarray(Image.fromarray(large[frame]).resize((48, 48), Image.Resampling.BOX)).astype(int)
        same, other = (np.corrcoef(shrunk.ravel(), side.ravel())[0, 1] for side in (small[frame], small[frame][::-1]))
        assert same > 0.93
        assert other < 0.6


def test_train_and_test_clips_have_nothing_in_common():
    train, test = find_videos("train"), find_videos("test")
    assert (len(train), len(test)) == (2, 30)
    assert not set(train.sources) & set(test.sources)
    assert train.load(0, 16) is train.load(0, 16)


def test_folder_of_sequences_and_files(tmp_path):
    write_images(tmp_path / "b")
    write_images(tmp_path / "a", value=200)
    frames = [Image.new("RGB", (16, 16), (0, 0, 80 * k)) for k in range(3)]
    frames[0].save(tmp_path / "c.gif", save_all=True, append_images=frames[1:])
    videos = find_videos(tmp_path)
    assert videos.names == ("a", "b", "c.gif")
    clip = videos.load(0, 8)
    assert clip.shape == (3, 8, 8, 3)
    assert clip[:, 0, 0].tolist() == [[200, 0, 0], [200, 40, 0], [200, 80, 0]]
    assert videos.load(2, 8).shape == (3, 8, 8, 3)
    assert len(find_videos(tmp_path / "a")) == 1


def test_davis_lists(tmp_path):
    root = tmp_path / "JPEGImages" / "480p"
    for name in ("bear", "bmx-bumps", "boat", *DAVIS_TEST):
        write_images(root / name, 1)
    assert find_videos("train", tmp_path).names == ("bear", "bmx-bumps")
    assert find_videos("train", tmp_path, 3).names == ("bear", "bmx-bumps", "boat")
    assert find_videos("test", tmp_path).names == DAVIS_TEST
    assert len(find_videos(tmp_path)) == 33


def test_what_is_missing_or_damaged_is_named(tmp_path):
    with pytest.raises(ValueError, match="train, test, validation or a folder"):
        find_videos(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="neither video files"):
        find_videos(tmp_path)
    with pytest.raises(ValueError, match="DAVIS folder"):
        find_videos("train", tmp_path)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "0.png").write_bytes(b"not an image")
    (tmp_path / "broken.mp4").write_bytes(b"not a video")
    videos = find_videos(tmp_path)
    for index in range(2):
        with pytest.raises(ValueError, match="is damaged") as error:
            videos.load(index, 8)
        assert "\n" not in str(error.value)


def test_cache_stays_within_its_budget():
    cache = ClipCache(3 * 64 * 16 * 16 * 3)
    first = cache.get(0, 16)
    for seed in range(1, 5):
        cache.get(seed, 16)
        assert cache.size() <= cache.budget
    assert cache.get(0, 16) is not first
    assert np.array_equal(cache.get(0, 16), first)


def test_images_play_in_the_order_of_their_numbers(tmp_path):
    (tmp_path / "clip").mkdir()
    for k in range(1, 13):
        Image.new("RGB", (16, 16), (20 * k, 0, 0)).save(tmp_path / "clip" / f"frame {k}.png")
    (sources,) = find_videos(tmp_path).sources
    assert [path.name for path in sources] == [f"frame {k}.png" for k in range(1, 13)]


def test_video_files_need_an_extra(tmp_path, monkeypatch):
    (tmp_path / "clip.mp4").write_bytes(b"video")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pisces-rl\[control\]'"):
        find_videos(tmp_path).load(0, 16)

import numpy as np
import pytest
import torch

from pisces.agents.drq.replay import Replay
from pisces.errors import UserError

SIZE, STACK = 4, 3


def fill(replay, episodes, length, reference, first=0):
    for episode in range(first, first + episodes):
        rng = np.random.default_rng(episode)
        frames = rng.integers(0, 256, (length + 1, SIZE, SIZE, 3), dtype=np.uint8)
        replay.begin(frames[0])
        stack = [frames[0]] * STACK
        for step in range(length):
            action, reward, last = rng.normal(size=2).astype(np.float32), float(step), step == length - 1
            replay.add(action, reward, last, frames[step + 1])
            following = [*stack[1:], frames[step + 1]]
            reference[action.tobytes()] = (np.concatenate(stack, -1), reward, np.concatenate(following, -1), last)
            stack = following


def check(replay, reference, count=200):
    batch = replay.sample(count, np.random.default_rng(0))
    for k in range(count):
        observation, reward, following, last = reference[batch.actions[k].tobytes()]
        assert np.array_equal(batch.observations[k], observation)
        assert np.array_equal(batch.next_observations[k], following)
        assert batch.rewards[k, 0] == reward
        assert batch.continues[k, 0] == (not last)
    return batch


@pytest.mark.parametrize("episodes", [1, 3, 40])
def test_batches_equal_a_naive_replay(tmp_path, episodes):
    replay, reference = Replay(tmp_path, 100, SIZE, STACK, 2), {}
    fill(replay, episodes, 9, reference)
    batch = check(replay, reference)
    # After going round, only the newest transitions are drawn.
    newest = set(list(reference)[-110:])
    assert {action.tobytes() for action in batch.actions} <= newest


@pytest.mark.parametrize(("steps", "ends"), [(1, True), (3, True), (3, False), (20, True)])
def test_longer_transitions_add_up_discounted_rewards(tmp_path, steps, ends):
    replay, length, discount = Replay(tmp_path, 100, SIZE, STACK, 1), 7, 0.5
    frames = np.arange(length + 1, dtype=np.uint8)[:, None, None, None] * np.ones((1, SIZE, SIZE, 3), np.uint8)
    for _ in range(2):
        replay.begin(frames[0])
        for step in range(length):
            replay.add(np.array([step], np.float32), 10.0**step, ends and step == length - 1, frames[step + 1])
    batch = replay.sample(100, np.random.default_rng(0), steps, discount)
    for k in range(100):
        start = int(batch.actions[k, 0])
        stop = min(start + steps, length)
        assert batch.rewards[k, 0] == pytest.approx(sum(discount**i * 10.0 ** (start + i) for i in range(stop - start)))
        assert batch.next_observations[k, 0, 0, -1] == stop
        assert batch.next_observations[k, 0, 0, 0] == max(stop - 2, 0)
        assert batch.continues[k, 0] == (0 if ends and stop == length else discount ** (stop - start - 1))


def test_a_batch_of_one_transition_is_fit_for_torch(tmp_path):
    replay, reference = Replay(tmp_path, 100, SIZE, STACK, 2), {}
    fill(replay, 1, 9, reference)
    batch = replay.sample(1, np.random.default_rng(0))
    assert torch.from_numpy(batch.actions)[0].numpy().tobytes() in reference


def test_goes_on_after_a_restart(tmp_path):
    whole, reference = Replay(tmp_path / "a", 100, SIZE, STACK, 2), {}
    fill(whole, 14, 9, reference)
    cut = Replay(tmp_path / "b", 100, SIZE, STACK, 2)
    fill(cut, 10, 9, {})
    written = cut.flush()
    assert cut.safe(40)
    fill(cut, 4, 9, {}, first=50)  # lost: written after the checkpoint
    again = Replay(tmp_path / "b", 100, SIZE, STACK, 2, written)
    fill(again, 4, 9, {}, first=10)
    check(again, reference)
    one, other = (replay.sample(50, np.random.default_rng(3)) for replay in (whole, again))
    assert np.array_equal(one.observations, other.observations)
    assert not again.safe(10**6)


def test_frames_are_kept_once(tmp_path):
    Replay(tmp_path, 100_000, 84, 3, 6)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 2.5e9


def test_missing_files_and_empty_replays_are_explained(tmp_path):
    with pytest.raises(ValueError, match="is missing or has another size"):
        Replay(tmp_path, 10, SIZE, STACK, 2, written=5)
    replay = Replay(tmp_path, 10, SIZE, STACK, 2)
    replay.begin(np.zeros((SIZE, SIZE, 3), np.uint8))
    with pytest.raises(ValueError, match="no transition to sample"):
        replay.sample(1, np.random.default_rng(0))


@pytest.mark.parametrize("episodes", [2, 40])
def test_damaged_files_are_refused_and_later_writes_are_not_damage(tmp_path, episodes):
    replay, reference = Replay(tmp_path, 100, SIZE, STACK, 2), {}
    fill(replay, episodes, 9, reference)
    written, digest, known = replay.flush(), replay.digest(), dict(reference)
    fill(replay, 5, 9, reference, first=episodes)  # after the checkpoint, then the process is killed
    replay.flush()
    check(Replay(tmp_path, 100, SIZE, STACK, 2, written, digest), known)
    kept = {slot % replay.slots for slot in range(max(written - replay._kept, 0), written)}
    rng = np.random.default_rng(0)
    for name, size in (("frames.u8", SIZE * SIZE * 3), ("columns.bin", replay._columns.dtype.itemsize)):
        whole = (tmp_path / name).read_bytes()
        for place in rng.choice(len(whole), 40, replace=False):
            damaged = bytearray(whole)
            damaged[place] ^= 4
            (tmp_path / name).write_bytes(damaged)
            if place // size in kept:
                with pytest.raises(UserError, match="damaged; delete the run's checkpoint to restart it"):
                    Replay(tmp_path, 100, SIZE, STACK, 2, written, digest)
            else:
                check(Replay(tmp_path, 100, SIZE, STACK, 2, written, digest), known)
        (tmp_path / name).write_bytes(whole)
    check(Replay(tmp_path, 100, SIZE, STACK, 2, written), known)  # a checkpoint of an earlier version

"""Episodes of the Distracting Control benchmark: evaluation, pairs before two backgrounds, pictures."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pisces.agents.drq import DrQAgent, EpisodePair
from pisces.agents.loading import ControlPolicy
from pisces.envs.distracting import DistractingEnv
from pisces.errors import UserError
from pisces.experiments.distracting import DistractingConfig
from pisces.experiments.store import RunFolder
from pisces.metrics import l1_distance, sequence_metric

# Streams of seeds for episodes.
TRAIN, TEST, EPISODE, PAIR, DRAW, VALIDATION, ALIGNMENT = range(7)
Policy = Callable[[NDArray[np.uint8]], NDArray[np.float32]]


def make_env(config: DistractingConfig, videos: str) -> DistractingEnv:
    """The config's environment with the training or the test videos."""
    protocol = config.protocol
    return DistractingEnv(
        config.task,
        config.variant,
        videos,
        config.davis or None,
        protocol.frame_size,
        protocol.frame_stack,
        config.action_repeat,
    )


def make_agent(config: DistractingConfig, env: DistractingEnv, device: str = "cpu") -> DrQAgent:
    """The config's agent before any training."""
    height, _, channels = env.observation_space.shape  # type: ignore[misc]
    actions = env.action_space.shape[0]  # type: ignore[index]
    return DrQAgent(height, channels, actions, config.settings, config.seed, device)


def stream_seed(config: DistractingConfig, *stream: int) -> int:
    """A seed for one purpose of a run."""
    return int(np.random.default_rng([config.seed, 8, *stream]).integers(2**31))


def play(env: DistractingEnv, policy: Policy, seed: int, options: dict[str, Any] | None = None) -> dict[str, Any]:
    """Plays one episode; returns its frames (the one after the last action included), actions and return."""
    observation, _ = env.reset(seed=seed, options=options)
    frames, actions, total, done = [env.render()], [], 0.0, False
    while not done:
        action = policy(observation)
        observation, reward, terminated, truncated, _ = env.step(action)
        frames.append(env.render())
        actions.append(action)
        total += float(reward)
        done = terminated or truncated
    return {"frames": np.stack(frames), "actions": np.stack(actions), "return": total}


def replay(
    env: DistractingEnv, actions: NDArray[np.float32], seed: int, options: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Plays the actions of an episode again, as a rule before another background."""
    sequence = iter(actions)
    return play(env, lambda _: next(sequence), seed, options)


def evaluate(
    config: DistractingConfig, env: DistractingEnv, agent: DrQAgent | ControlPolicy, episodes: int, stream: int
) -> list[float]:
    """Returns of greedy episodes, spread evenly over the videos."""
    returns = []
    for episode in range(episodes):
        options = None if env.videos is None else {"video": episode % len(env.videos)}
        returns.append(float(play(env, agent.act, stream_seed(config, stream, episode), options)["return"]))
    return returns


def validation_return(config: DistractingConfig, folder: RunFolder) -> float:
    """Mean return of the policy in a run's checkpoint in front of the validation videos, which no result is from."""
    checkpoint = folder.load_checkpoint()
    if checkpoint is None:
        raise UserError(f"expected a checkpoint in {str(folder.path)!r}, got none; train the run first")
    env = make_env(config, "validation")
    try:
        agent = make_agent(config, env)
        agent.restore_policy(checkpoint[0])
        return float(np.mean(evaluate(config, env, agent, config.protocol.train_episodes, VALIDATION)))
    finally:
        env.close()


def action_metric(actions: NDArray[np.float32], discount: float) -> NDArray[np.float32]:
    """Policy similarity metric of an action sequence with itself; the cost is the mean absolute difference."""
    cost = l1_distance(actions, actions) / actions.shape[1]
    return np.asarray(sequence_metric(cost, discount), dtype=np.float32)


def write_pairs(
    config: DistractingConfig, agent: DrQAgent, folder: Path, report: Callable[[int], None] = lambda done: None
) -> None:
    """Plays the policy's action sequences before two backgrounds each; goes on where an earlier call stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    env = make_env(config, "train")
    for number in range(config.protocol.pairs):
        path = folder / f"{number:04d}.npz"
        if not path.exists():
            _write_pair(path, _record_pair(config, env, agent, number))
        report(number + 1)
    env.close()


def _record_pair(config: DistractingConfig, env: DistractingEnv, agent: DrQAgent, number: int) -> dict[str, Any]:
    seed = stream_seed(config, PAIR, number)
    backgrounds = [stream_seed(config, PAIR, number, side) for side in (1, 2)]
    x = play(env, agent.act, seed, {"background_seed": backgrounds[0]})
    y = replay(env, x["actions"], seed, {"background_seed": backgrounds[1]})
    discount = config.settings.metric_discount
    return {
        "frames_x": x["frames"][:-1],
        "frames_y": y["frames"][:-1],
        "actions": x["actions"],
        "metric": action_metric(x["actions"], discount),
        "discount": np.array(discount),
        "return": np.array(x["return"]),
    }


def _write_pair(path: Path, arrays: dict[str, Any]) -> None:
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.npz")
    np.savez_compressed(temporary, **arrays)
    temporary.replace(path)


class PairStore:
    """Pairs of episodes, their frames unpacked into one memory map.

    Args:
        folder: where `write_pairs` put them.
        count: how many to use.
        frame_stack: frames per observation.
        discount: of the metric; it is solved anew if the pairs were written with another.
        scratch: the file to unpack into.
    """

    def __init__(self, folder: Path, count: int, frame_stack: int, discount: float, scratch: Path) -> None:
        self._stack = frame_stack
        self.metrics: list[NDArray[np.float32]] = []
        self.returns: list[float] = []
        self._frames: Any = None
        for number in range(count):
            self._unpack(folder / f"{number:04d}.npz", number, count, discount, scratch)

    def _unpack(self, path: Path, number: int, count: int, discount: float, scratch: Path) -> None:
        try:
            with np.load(path, allow_pickle=False) as archive:
                pair = np.stack([archive["frames_x"], archive["frames_y"]])
                same = float(archive["discount"]) == discount
                self.metrics.append(archive["metric"] if same else action_metric(archive["actions"], discount))
                self.returns.append(float(archive["return"]))
        except (OSError, ValueError, KeyError) as error:
            raise UserError(f"expected a pair of episodes in {str(path)!r}, got none; run --stage pairs") from error
        if self._frames is None:
            self._frames = np.memmap(scratch, np.uint8, "w+", shape=(count, *pair.shape))
        self._frames[number] = pair

    def draw(self, rng: np.random.Generator) -> EpisodePair:
        """Draws a pair."""
        number = int(rng.integers(len(self.metrics)))
        x, y = (stack_observations(self._frames[number, side], self._stack) for side in (0, 1))
        return EpisodePair(x, y, self.metrics[number])


def stack_observations(frames: NDArray[np.uint8], stack: int) -> NDArray[np.uint8]:
    """Stacks the frames [T, H, W, 3] of an episode into observations [T, H, W, 3 stack]."""
    places = np.arange(len(frames))
    steps = [np.maximum(places - back, 0) for back in range(stack - 1, -1, -1)]
    return np.concatenate([frames[place] for place in steps], axis=-1)


def write_pictures(config: DistractingConfig, agent: DrQAgent, folder: Path) -> None:
    """Writes a picture of all test backgrounds, and one greedy episode on a training and on an unseen video each."""
    from PIL import Image

    for videos in ("train", "test"):
        env = make_env(config, videos)
        if videos == "test" and env.videos is not None:
            shots = [env.reset(seed=0, options={"video": k})[0][..., -3:] for k in range(len(env.videos))]
            rows = [np.concatenate(shots[k : k + 10], axis=1) for k in range(0, len(shots) - 9, 10)]
            if rows:
                Image.fromarray(np.concatenate(rows)).save(folder / "test_backgrounds.png")
        frames = play(env, agent.act, stream_seed(config, TRAIN, 0))["frames"]
        images = [Image.fromarray(frame) for frame in frames]
        path = folder / f"episode_{videos}.gif"
        images[0].save(path, save_all=True, append_images=images[1:], duration=40, loop=0)
        env.close()

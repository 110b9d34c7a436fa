"""Episodes of the Distracting Control benchmark: evaluation, pairs with two backgrounds, pictures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pisces.agents.drq.agent import DrQAgent
from pisces.agents.drq.settings import DrQSettings
from pisces.envs.distracting.env import DistractingEnv
from pisces.errors import UserError
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.distracting.policy import ControlPolicy
from pisces.files import check_free_space, replacing
from pisces.metrics import l1_distance
from pisces.pairs import Pair, TrajectoryPairs
from pisces.runs.store import RunFolder
from pisces.trajectories import Trajectory
from pisces.validation import load_arrays

# Streams of seeds for episodes.
TRAIN, TEST, EPISODE, PAIR, DRAW, VALIDATION, ALIGNMENT = range(7)
Policy = Callable[[NDArray[np.uint8]], NDArray[np.float32]]


def make_env(config: DistractingConfig, videos: str) -> DistractingEnv:
    """The config's environment with the "train" videos, or the "test" ones: those that count as unseen."""
    protocol = config.protocol
    return DistractingEnv(
        config.task,
        config.variant,
        protocol.unseen_videos if videos == "test" else videos,
        config.davis or None,
        protocol.frame_size,
        protocol.frame_stack,
        config.action_repeat,
        supersampling=protocol.supersampling,
    )


def make_agent(config: DistractingConfig, env: DistractingEnv, device: str = "cpu") -> DrQAgent:
    """Returns the config's untrained agent."""
    height, _, channels = env.observation_space.shape  # type: ignore[misc]
    actions = env.action_space.shape[0]  # type: ignore[index]
    return DrQAgent(height, channels, actions, config.settings, config.seed, device, config.largest_reward)


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
    """Replays the actions of an episode, usually with another background."""
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
    """Mean return of the policy in a run's checkpoint with the validation videos, which no result is measured on."""
    tensors, _ = folder.read_checkpoint()
    env = make_env(config, "validation")
    try:
        agent = make_agent(config, env)
        with folder.checkpoint_errors():
            agent.restore_policy(tensors)
        return float(np.mean(evaluate(config, env, agent, config.protocol.train_episodes, VALIDATION)))
    finally:
        env.close()


def mean_action_difference(x: Trajectory, y: Trajectory) -> NDArray[np.float64]:
    """The cost of the metric: the absolute difference of two actions, averaged over their dimensions, [n, m]."""
    assert x.actions is not None
    assert y.actions is not None
    return np.asarray(l1_distance(x.actions, y.actions) / x.actions.shape[1])


def write_pairs(
    config: DistractingConfig, agent: DrQAgent, folder: Path, report: Callable[[int], None] = lambda done: None
) -> None:
    """Records the policy's action sequences with two backgrounds each; resumes where an earlier call stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    env = make_env(config, "train")
    for number in range(config.protocol.pairs):
        path = pair_path(folder, number)
        if not path.exists():
            _write_pair(path, _record_pair(config, env, agent, number))
        report(number + 1)
    env.close()


def pair_path(folder: Path, number: int) -> Path:
    """Returns the file of a pair of episodes."""
    return folder / f"{number:04d}.npz"


def _record_pair(config: DistractingConfig, env: DistractingEnv, agent: DrQAgent, number: int) -> dict[str, Any]:
    seed = stream_seed(config, PAIR, number)
    backgrounds = [stream_seed(config, PAIR, number, side) for side in (1, 2)]
    x = play(env, agent.act, seed, {"background_seed": backgrounds[0]})
    y = replay(env, x["actions"], seed, {"background_seed": backgrounds[1]})
    return {
        "frames_x": x["frames"][:-1],
        "frames_y": y["frames"][:-1],
        "actions": x["actions"],
        "return": np.array(x["return"]),
    }


def _write_pair(path: Path, arrays: dict[str, Any]) -> None:
    with replacing(path) as file:
        np.savez_compressed(file, **arrays)


class PairStore:
    """Recorded pairs of episodes, whose frames are unpacked into one memory map.

    Args:
        folder: the folder that `write_pairs` wrote.
        count: how many pairs to use.
        frame_stack: frames per observation.
        settings: the settings of the metric and the numbers of states to draw.
        scratch: the file to unpack into.
    """

    def __init__(self, folder: Path, count: int, frame_stack: int, settings: DrQSettings, scratch: Path) -> None:
        self._stack = frame_stack
        self._frames: Any = None
        self.returns: list[float] = []
        episodes = [
            episode
            for number in range(count)
            for episode in self._unpack(pair_path(folder, number), number, count, scratch)
        ]
        self.pairs = TrajectoryPairs(
            episodes,
            discount=settings.metric_discount,
            cost=mean_action_difference,
            last="self-loop",  # committed results take the last state as absorbing, although a time limit ends episodes
            # Both episodes of a pair may give the anchors.
            pairs=[pair for x in range(0, 2 * count, 2) for pair in ((x, x + 1), (x + 1, x))],
            states=settings.anchors,
            candidates=settings.candidates or sys.maxsize,
            observe=self.observations,
            folder=scratch.parent,
        )

    def _unpack(self, path: Path, number: int, count: int, scratch: Path) -> list[Trajectory]:
        """Unpacks the frames of a pair; returns its two episodes, whose observations are the numbers of frames."""
        try:
            arrays = load_arrays("a pair of episodes", path)
            frames, actions = np.stack([arrays["frames_x"], arrays["frames_y"]]), arrays["actions"]
            self.returns.append(float(arrays["return"]))
            _check_pair(frames, actions)
            if self._frames is None:
                scratch.unlink(missing_ok=True)  # of an interrupted run, whose space is free then
                check_free_space(scratch.parent, "the frames of the pairs", count * frames.nbytes, "choose fewer pairs")
                self._frames = np.memmap(scratch, np.uint8, "w+", shape=(count, *frames.shape))
            if frames.shape != self._frames.shape[1:]:
                raise ValueError(f"frames {frames.shape} unlike those of the other pairs")
        except (ValueError, TypeError, KeyError) as error:
            raise UserError(f"{str(path)!r} is damaged; delete it and run the same command again") from error
        self._frames[number] = frames
        numbers = 2 * number * len(actions) + np.arange(2 * len(actions)).reshape(2, -1)
        return [Trajectory(side, actions, terminated=False) for side in numbers]

    def observations(self, numbers: NDArray[np.int64]) -> torch.Tensor:
        """The stacked observations [n, H, W, 3 stack] of the states with these numbers."""
        length = self._frames.shape[2]
        frames = self._frames.reshape(-1, *self._frames.shape[3:])
        return torch.from_numpy(_stack(frames, numbers, numbers - numbers % length, self._stack))

    def draw(self, rng: np.random.Generator) -> Pair:
        """Samples a pair."""
        return self.pairs.sample(rng)


def _check_pair(frames: NDArray[Any], actions: NDArray[Any]) -> None:
    """Raises unless frames [2, T, H, W, 3] and actions [T, A] can be those of a pair."""
    fits = frames.ndim == 5 and actions.ndim == 2 and frames.shape[1] == len(actions) > 0 and frames.shape[4] == 3
    if not fits or frames.dtype != np.uint8 or actions.dtype != np.float32 or not np.isfinite(actions).all():
        raise ValueError(f"frames {frames.dtype} {frames.shape} and actions {actions.dtype} {actions.shape}")


def stack_observations(frames: NDArray[np.uint8], stack: int) -> NDArray[np.uint8]:
    """Stacks the frames [T, H, W, 3] of an episode into observations [T, H, W, 3 stack]."""
    return _stack(frames, np.arange(len(frames)), np.zeros(len(frames), np.int64), stack)


def _stack(
    frames: NDArray[np.uint8], places: NDArray[np.int64], starts: NDArray[np.int64], stack: int
) -> NDArray[np.uint8]:
    """Stacks the frames at places and before them; before the start of an episode, its first frame is repeated."""
    steps = [np.maximum(places - back, starts) for back in range(stack - 1, -1, -1)]
    return np.concatenate([frames[step] for step in steps], axis=-1)


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

"""Policy similarity embeddings for the agents of Stable-Baselines3 (extra `sb3`).

from pisces.integrations.stable_baselines3 import GreedyPairs, PolicySimilarityCallback

callback = PolicySimilarityCallback(GreedyPairs(training_environments))
model.learn(100_000, callback=callback)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pisces.agents.checkpoint import load_checkpoint, save_checkpoint, tensors_below
from pisces.errors import UserError, import_extra
from pisces.integrations.encoders import greedy_actions
from pisces.integrations.training import SimilaritySettings, Trainer
from pisces.pairs import GreedyPairs, Pair, TrajectoryPairs
from pisces.trajectories import Trajectory

import_extra("stable_baselines3", "sb3")
from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402

__all__ = ["GreedyPairs", "PolicySimilarityCallback", "SimilaritySettings"]

SUFFIX = ".similarity.safetensors"


class PolicySimilarityCallback(BaseCallback):
    """Trains the model's features extractor to pull together states in which the agent should act alike.

    It trains between rollouts, so that on-policy algorithms collect each rollout with the policy that they then train,
    and logs `similarity/loss`, `similarity/alignment` (share of states whose neighbor in the embedding is a nearest
    one by the metric) and `similarity/updates`.

    Example:
        A callback for PPO, SAC, DQN and related algorithms whose metric comes from greedy episodes::

            callback = PolicySimilarityCallback(GreedyPairs([make_env(0), make_env(1)]), SimilaritySettings(start=5000))
            model.learn(50_000, callback=callback)
            model.save("agent")
            callback.save("agent")

    Args:
        pairs: `GreedyPairs` for the agent's own greedy episodes, or `pisces.pairs.TrajectoryPairs` for given
            trajectories, such as an expert's.
        settings: how to train.
        verbose: as in Stable-Baselines3.
    """

    def __init__(
        self,
        pairs: GreedyPairs | TrajectoryPairs,
        settings: SimilaritySettings | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        if not isinstance(pairs, GreedyPairs | TrajectoryPairs):
            raise UserError(f"expected GreedyPairs or TrajectoryPairs, got {type(pairs).__name__}")
        self.pairs, self.settings = pairs, settings or SimilaritySettings()
        self.updates, self._trained_at = 0, -1
        self._trainer: Trainer | None = None
        self._restored: tuple[dict[str, Tensor], dict[str, Any]] | None = None

    def _init_callback(self) -> None:
        if self._trainer is not None and self._trainer.model is self.model:
            return
        state = self._restored or (self._state() if self._trainer is not None else None)
        trainer = Trainer(self.model, self.settings)
        if state is not None:
            self._restore(trainer, *state)
        # Last, so that a state that does not fit is refused again when `learn` is called again.
        self._trainer, self._restored = trainer, None

    def _on_training_start(self) -> None:
        # Another call of `learn`, or another model, may count steps from zero again.
        if self.model.num_timesteps < max(self._trained_at, 1):
            self._trained_at = -1

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        now = self.model.num_timesteps
        if now < self.settings.start or (self._trained_at >= 0 and now - self._trained_at < self.settings.every):
            return
        self._trained_at = now
        loss, alignment = self.train()
        self.logger.record("similarity/loss", loss)
        self.logger.record("similarity/alignment", alignment)
        self.logger.record("similarity/updates", self.updates)

    def train(self, updates: int | None = None) -> tuple[float, float]:
        """Runs updates now; returns their mean loss, and the alignment score before the last of them."""
        trainer = self._begun()
        losses, alignment = [], 0.0
        wanted = self.settings.updates if updates is None else updates
        if wanted < 1:
            raise UserError(f"updates must be at least 1, got {wanted}")
        for index in range(wanted):
            last = index == wanted - 1
            loss, score = trainer.update([self.sample() for _ in range(self.settings.pairs)], score=last)
            losses.append(loss)
            alignment = score if last else alignment
        self.updates += wanted
        return float(np.mean(losses)), alignment

    def sample(self) -> Pair:
        """Samples a pair of trajectories; may play greedy episodes."""
        if isinstance(self.pairs, TrajectoryPairs):
            return self.pairs.sample()
        self._begun()
        return self.pairs.sample(lambda observations: greedy_actions(self.model, observations))

    def embed(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """Returns the embeddings [n, k] of observations [n, ...] as the raw environments give them."""
        return self._begun().embed(np.asarray(observations))

    def save(self, path: str | Path) -> Path:
        """Saves the projection, the optimizer, the episodes and the state of the generator beside a model.

        Args:
            path: the path given to `model.save`; the file's name ends with `.similarity.safetensors`.

        Returns:
            The path of the file.
        """
        self._begun()
        file = _beside(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        save_checkpoint(file, *self._state())
        return file

    @classmethod
    def load(cls, path: str | Path, pairs: GreedyPairs | TrajectoryPairs, verbose: int = 0) -> PolicySimilarityCallback:
        """Loads what `save` wrote; the next `learn` of the loaded model continues from there.

        Args:
            path: the path given to `save`.
            pairs: made like those of the saved callback; greedy episodes and the generator are restored into them.
            verbose: as in Stable-Baselines3.
        """
        file = _beside(path)
        if not file.exists():
            raise UserError(f"no saved callback in {str(file)!r}; callback.save(...) writes it")
        tensors, numbers = load_checkpoint(file)
        callback = cls(pairs, SimilaritySettings(**numbers["settings"]), verbose)
        callback._restored = tensors, numbers
        return callback

    def _begun(self) -> Trainer:
        if self._trainer is None:
            raise UserError("the callback is not attached to a model yet; pass it to model.learn(callback=...) first")
        return self._trainer

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        assert self._trainer is not None
        tensors = self._trainer.state()
        numbers: dict[str, Any] = {
            "settings": asdict(self.settings),
            "updates": self.updates,
            "trained_at": self._trained_at,
            "parameters": len(self._trainer.parameters),
            "draws": self.pairs.generator.bit_generator.state,
        }
        if isinstance(self.pairs, GreedyPairs):
            numbers |= {"drawn": self.pairs.drawn, "episodes": len(self.pairs.episodes)}
            for index, episode in enumerate(self.pairs.episodes):
                tensors |= _episode_tensors(index, episode)
        return tensors, numbers

    def _restore(self, trainer: Trainer, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        draws, own = numbers["draws"], self.pairs.generator.bit_generator
        if draws["bit_generator"] != own.state["bit_generator"]:
            kinds = f"{draws['bit_generator']}, not {own.state['bit_generator']}"
            raise UserError(f"pairs must have a generator of the saved kind, {kinds}")
        trainer.restore(tensors, numbers.get("parameters"))
        if isinstance(self.pairs, GreedyPairs) and numbers.get("episodes"):
            self.pairs.set_episodes([_episode(index, tensors) for index in range(numbers["episodes"])])
            self.pairs.drawn = numbers["drawn"]
        self.updates, self._trained_at = numbers["updates"], numbers["trained_at"]
        own.state = draws


def _beside(path: str | Path) -> Path:
    text = str(path)
    return Path(text if text.endswith(SUFFIX) else text.removesuffix(".zip") + SUFFIX)


def _episode_tensors(index: int, episode: Trajectory) -> dict[str, Tensor]:
    return {f"episode.{index}.{name}": torch.tensor(value) for name, value in episode.arrays().items()}


def _episode(index: int, tensors: Mapping[str, Tensor]) -> Trajectory:
    arrays = {name: tensor.numpy() for name, tensor in tensors_below(f"episode.{index}.", tensors).items()}
    return Trajectory(**arrays)  # type: ignore[arg-type]  # `terminated` is converted to bool

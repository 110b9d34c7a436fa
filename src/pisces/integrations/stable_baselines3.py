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
from numpy.typing import NDArray
from torch import Tensor

from pisces.agents.checkpoint import load_checkpoint, save_checkpoint
from pisces.errors import UserError, import_extra, unknown_name
from pisces.integrations.files import episode_tensors, load_episode, path_beside
from pisces.integrations.observations import Observations, greedy_actions, wrap_environment
from pisces.integrations.overhead import OverheadClock
from pisces.integrations.settings import SimilaritySettings
from pisces.integrations.training import PairTrainer, Trainer, TransitionTrainer
from pisces.integrations.transitions import TransitionSource
from pisces.losses import LOSSES
from pisces.pairs import GreedyPairs, Pair, TrajectoryPairs

import_extra("stable_baselines3", "sb3")
from stable_baselines3.common.callbacks import BaseCallback  # noqa: E402

__all__ = ["GreedyPairs", "PolicySimilarityCallback", "SimilaritySettings", "wrap_environment"]


class PolicySimilarityCallback(BaseCallback):
    """Trains the model's features extractor with a behavioral loss.

    The loss "pse" pulls together states in which the agent should act alike, by pairs of trajectories. The other losses
    compare the agent's own transitions, from its replay buffer or its newest rollout, and need no pairs.

    It trains between rollouts, so that on-policy algorithms collect each rollout with the policy that they then train,
    and logs `similarity/loss`, `similarity/updates`, `similarity/seconds_per_update`, `similarity/overhead` (time of
    all updates as a share of the agent's own training time) and, for "pse", `similarity/alignment` (share of states
    whose neighbor in the embedding is a nearest one by the metric). A callback belongs to one model.

    Example:
        A callback for PPO, SAC, DQN and related algorithms whose metric comes from greedy episodes::

            callback = PolicySimilarityCallback(GreedyPairs([make_env(0), make_env(1)]), SimilaritySettings(start=5000))
            model.learn(50_000, callback=callback)
            model.save("agent")
            callback.save("agent")

    Args:
        pairs: for the loss "pse", `GreedyPairs` for the agent's own greedy episodes, or `pisces.pairs.TrajectoryPairs`
            for given trajectories, such as an expert's.
        settings: how to train.
        verbose: as in Stable-Baselines3.
        loss: "pse", or one of `pisces.losses.LOSSES`: "dbc", "dbc-normalized", "deepmdp", "mico", "simsr", "spr",
            "curl".
        loss_options: options of `pisces.losses.make_loss`, e.g. ``{"discount": 0.9}``; for "pse" use the settings.
    """

    def __init__(
        self,
        pairs: GreedyPairs | TrajectoryPairs | None = None,
        settings: SimilaritySettings | None = None,
        verbose: int = 0,
        *,
        loss: str = "pse",
        loss_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(verbose)
        if loss != "pse" and loss not in LOSSES:
            raise unknown_name("loss", loss, ("pse", *LOSSES))
        if loss == "pse" and not isinstance(pairs, GreedyPairs | TrajectoryPairs):
            raise UserError(f"expected GreedyPairs or TrajectoryPairs, got {type(pairs).__name__}")
        if loss != "pse" and pairs is not None:
            raise UserError(f"loss {loss!r} takes the agent's own transitions; leave out pairs")
        if loss == "pse" and loss_options:
            raise UserError("loss 'pse' has no loss_options; use SimilaritySettings")
        self.pairs, self.settings = pairs, settings or SimilaritySettings()
        self.loss, self.loss_options = loss, dict(loss_options or {})
        self._source: TransitionSource | None = None
        self.clock = OverheadClock()
        self.updates, self._trained_at = 0, -1
        self._trainer: Trainer | None = None
        self._restored: tuple[dict[str, Tensor], dict[str, Any]] | None = None

    def _init_callback(self) -> None:
        if self._trainer is not None:
            if self._trainer.model is not self.model:
                self.model = self._trainer.model
                raise UserError(
                    "the callback belongs to another model; make a new callback for each model, or continue with a "
                    "saved one: PolicySimilarityCallback.load(path, pairs, model=model)"
                )
            return
        trainer = self._make_trainer()
        if isinstance(self.pairs, GreedyPairs):
            self.pairs.forget()
            self.pairs.wrap_environments(lambda env: wrap_environment(env, self.model))
        if self._restored is not None:
            self._restore(trainer, *self._restored)
        # Last, so that a state that does not fit is refused again when `learn` is called again.
        self._trainer, self._restored = trainer, None

    def _make_trainer(self) -> Trainer:
        if self.loss == "pse":
            return PairTrainer(self.model, self.settings)
        self._source = TransitionSource(self.model, self.settings.batch_size, self.settings.seed)
        return TransitionTrainer(self.model, self.settings, self.loss, self.loss_options)

    def _on_training_start(self) -> None:
        # Another call of `learn` may count steps from zero again.
        if self.model.num_timesteps < max(self._trained_at, 1):
            self._trained_at = -1
        self.clock.start()

    def _on_training_end(self) -> None:
        self.clock.stop()

    def _on_step(self) -> bool:
        if self._source is not None:
            self._source.record(self.locals)
        return True

    def _on_rollout_end(self) -> None:
        if self._source is not None:
            self._source.finish_rollout()

    def _on_rollout_start(self) -> None:
        now = self.model.num_timesteps
        if now < self.settings.start or (self._trained_at >= 0 and now - self._trained_at < self.settings.every):
            return
        self._trained_at = now
        found = self._run_updates(self.settings.updates, self.settings.max_overhead)
        if found:
            self.logger.record("similarity/loss", float(np.mean([loss for loss, _ in found])))
            if self.loss == "pse":
                self.logger.record("similarity/alignment", found[0][1])
        self.logger.record("similarity/updates", self.updates)
        self.logger.record("similarity/seconds_per_update", self.clock.seconds_per_update)
        self.logger.record("similarity/overhead", self.clock.overhead)
        if self.settings.max_overhead is None:
            self.clock.warn_if_slow()

    def train(self, updates: int | None = None) -> tuple[float, float]:
        """Runs updates now; returns their mean loss, and for "pse" the alignment score before the first of them."""
        wanted = self.settings.updates if updates is None else updates
        if wanted < 1:
            raise UserError(f"updates must be at least 1, got {wanted}")
        found = self._run_updates(wanted, None)
        if not found:
            what = "greedy episodes that reach min_return" if self.loss == "pse" else "recorded transitions"
            raise UserError(f"there are too few {what}; train the agent longer")
        return float(np.mean([loss for loss, _ in found])), found[0][1]

    def _run_updates(self, wanted: int, max_overhead: float | None) -> list[tuple[float, float]]:
        """Runs updates as long as there are pairs and time; returns the loss and alignment of each."""
        found: list[tuple[float, float]] = []
        while len(found) < wanted and self.clock.affords(max_overhead):
            with self.clock.measure():
                result = self._update(score=not found)
            if result is None:
                break
            found.append(result)
            self.updates += 1
        return found

    def _update(self, score: bool) -> tuple[float, float] | None:
        """Makes one update; returns its loss and alignment, or None if there is nothing to train with."""
        trainer = self._begun()
        if isinstance(trainer, TransitionTrainer):
            assert self._source is not None
            batch = self._source.sample()
            return None if batch is None else (trainer.update(batch), 0.0)
        assert isinstance(trainer, PairTrainer)
        pairs: list[Pair] = []
        # After a None, asking again would play all greedy episodes again.
        while len(pairs) < self.settings.pairs and (pair := self.sample()) is not None:
            pairs.append(pair)
        return trainer.update(pairs, score) if pairs else None

    def sample(self) -> Pair | None:
        """Samples a pair of trajectories; may play greedy episodes.

        Returns:
            The pair; None if too few greedy episodes reach `min_return`.
        """
        if isinstance(self.pairs, TrajectoryPairs):
            return self.pairs.sample()
        model = self._begun().model
        if self.pairs is None:
            raise UserError(f"loss {self.loss!r} has no pairs")
        return self.pairs.sample(lambda observations: greedy_actions(model, observations))

    def embed(self, observations: Observations) -> NDArray[np.float32]:
        """Returns the embeddings [n, k] of observations [n, ...] of raw environments; for transitions, the features.

        Args:
            observations: as the environments give them; with stacked frames or Dict observations as
                `wrap_environment` does, or for Dict observations one array [n, ...] per key.
        """
        return self._begun().embed(observations)

    def save(self, path: str | Path) -> Path:
        """Saves the loss's parameters, the optimizer, the episodes and the state of the generator beside a model.

        Transitions are not saved.

        Args:
            path: the path given to `model.save`; the file's name ends with `.similarity.safetensors`.

        Returns:
            The path of the file.
        """
        self._begun()
        file = path_beside(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        save_checkpoint(file, *self._state())
        return file

    @classmethod
    def load(
        cls,
        path: str | Path,
        pairs: GreedyPairs | TrajectoryPairs | None = None,
        verbose: int = 0,
        *,
        model: Any = None,
        loss_options: Mapping[str, Any] | None = None,
    ) -> PolicySimilarityCallback:
        """Loads what `save` wrote; the next `learn` of the loaded model continues from there.

        Args:
            path: the path given to `save`.
            pairs: made like those of the saved callback; greedy episodes and the generator are restored into them.
            verbose: as in Stable-Baselines3.
            model: the loaded model, so that `embed` and `train` work before the next `learn`.
            loss_options: options that are functions, which are not saved.
        """
        file = path_beside(path)
        if not file.exists():
            raise UserError(f"no saved callback in {str(file)!r}; callback.save(...) writes it")
        tensors, numbers = load_checkpoint(file)
        options = {**numbers["loss_options"], **(loss_options or {})}
        settings = SimilaritySettings(**numbers["settings"])
        callback = cls(pairs, settings, verbose, loss=numbers["loss"], loss_options=options)
        callback._restored = tensors, numbers
        if model is not None:
            callback.init_callback(model)
        return callback

    def _begun(self) -> Trainer:
        if self._trainer is None:
            raise UserError(
                "the callback is not attached to a model yet; pass it to model.learn(callback=...) first, or load it "
                "with load(path, pairs, model=model)"
            )
        return self._trainer

    def _generator(self) -> np.random.Generator:
        """The generator that samples what the loss compares."""
        source = self.pairs if self.pairs is not None else self._source
        assert source is not None
        return source.generator

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        assert self._trainer is not None
        tensors = self._trainer.state()
        numbers: dict[str, Any] = {
            "settings": asdict(self.settings),
            "updates": self.updates,
            "trained_at": self._trained_at,
            "parameters": len(self._trainer.parameters),
            "loss": self.loss,
            "loss_options": {name: value for name, value in self.loss_options.items() if not callable(value)},
            "draws": self._generator().bit_generator.state,
        }
        if isinstance(self.pairs, GreedyPairs):
            numbers |= {"drawn": self.pairs.drawn, "episodes": len(self.pairs.episodes)}
            for index, episode in enumerate(self.pairs.episodes):
                tensors |= episode_tensors(index, episode)
        return tensors, numbers

    def _restore(self, trainer: Trainer, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        draws, own = numbers["draws"], self._generator().bit_generator
        if draws["bit_generator"] != own.state["bit_generator"]:
            kinds = f"{draws['bit_generator']}, not {own.state['bit_generator']}"
            raise UserError(f"pairs must have a generator of the saved kind, {kinds}")
        trainer.restore(tensors, numbers.get("parameters"))
        if isinstance(self.pairs, GreedyPairs) and numbers.get("episodes"):
            episodes = [load_episode(index, tensors) for index in range(numbers["episodes"])]
            self.pairs.restore(episodes, numbers["drawn"])
        self.updates, self._trained_at = numbers["updates"], numbers["trained_at"]
        own.state = draws

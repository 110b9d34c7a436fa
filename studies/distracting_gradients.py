"""Gradients of an agent's losses, for docs/distracting.md: ``python studies/distracting_gradients.py RUN...``.

RUN is the folder of a finished run with PSEs, beside the folder of its pretraining run with the pairs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from torch import Tensor
from torch.nn import functional

from pisces.agents.drq.agent import DrQAgent
from pisces.agents.drq.replay import Replay, TransitionBatch
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.distracting.data import PairStore, make_agent, make_env
from pisces.experiments.distracting.run import PAIRS
from pisces.files import write_atomically
from pisces.pairs import Pair
from pisces.reports.tables import markdown
from pisces.runs.store import RunFolder

FILE = "distracting/gradients.json"
EPISODES, BATCHES = 6, 20


def measure(path: Path) -> dict[str, Any]:
    """Mean norms of the gradients of a trained agent's losses, on its own episodes with the training videos."""
    folder = RunFolder(path)
    config = DistractingConfig.from_dict(folder.read_config())
    agent = make_agent(config, make_env(config, "train"))
    agent.restore(*folder.read_checkpoint())
    pretraining = RunFolder.of(folder.root, config.pretraining()).with_agent
    rng = np.random.default_rng(config.seed)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        replay = record(config, agent, scratch / "replay")
        settings, stack = config.settings, config.protocol.frame_stack
        pairs = PairStore(pretraining.file(PAIRS), config.protocol.pairs, stack, settings, scratch / "pairs")
        norms = []
        for _ in range(BATCHES):
            batch = replay.sample(settings.batch_size, rng, settings.return_steps, settings.discount)
            norms.append(gradient_norms(agent, batch, pairs.draw(rng)))
    means = {name: float(np.mean([norm[name] for norm in norms])) for name in norms[0]}
    return {"task": config.task, "seed": config.seed, "optimizer": settings.auxiliary_optimizer, **means}


def record(config: DistractingConfig, agent: DrQAgent, folder: Path) -> Replay:
    """Plays episodes with exploration noise into a replay memory."""
    protocol, env = config.protocol, make_env(config, "train")
    replay = Replay(
        folder, config.settings.buffer_size, protocol.frame_size, protocol.frame_stack, agent.action_size, 0
    )
    decisions = 0
    for episode in range(EPISODES):
        observation, _ = env.reset(seed=episode)
        replay.begin(env.render())
        done = False
        while not done:
            action = agent.act(observation, agent.exploration_noise(decisions))
            observation, reward, terminated, truncated, info = env.step(action)
            scale = info["steps"] if config.settings.average_rewards else 1
            replay.add(action, float(reward) / scale, terminated, env.render())
            done, decisions = terminated or truncated, decisions + 1
    env.close()
    return replay


def gradient_norms(agent: DrQAgent, batch: TransitionBatch, pair: Pair) -> dict[str, float]:
    """Norms of the gradients of the three losses, on the convolutions and on the actor's hidden layers."""
    layers = [agent.actor.trunk, agent.actor.hidden1, agent.actor.hidden2]
    convolutions, hidden = (
        [value for part in parts for value in part.parameters()] for parts in ([agent.convolutions], layers)
    )
    similarity = agent.auxiliary_loss(pair)
    return {
        "critic_convolutions": _norm(critic_loss(agent, batch), convolutions),
        "similarity_convolutions": _norm(similarity, convolutions, keep=True),
        "actor_hidden": _norm(actor_loss(agent, batch), hidden),
        "similarity_hidden": _norm(similarity, hidden),
    }


def critic_loss(agent: DrQAgent, batch: TransitionBatch) -> Tensor:
    """The critic's loss, without random shifts."""
    target = agent.target_values(batch, np.random.default_rng(0))
    values = agent.critic(_features(agent, batch), torch.from_numpy(batch.actions))
    return torch.stack([functional.mse_loss(value, target) for value in values]).sum()


def actor_loss(agent: DrQAgent, batch: TransitionBatch) -> Tensor:
    """The actor's loss on fixed features."""
    features = _features(agent, batch).detach()
    noise = torch.from_numpy(np.random.default_rng(0).standard_normal((len(features), agent.action_size), np.float32))
    sample = agent.actor.sample(features, noise, agent.noise, agent.settings.noise_clip)
    value = torch.minimum(*agent.critic(features, sample.actions))
    return (agent.alpha * sample.log_probability - value).mean()


def _features(agent: DrQAgent, batch: TransitionBatch) -> Tensor:
    images = torch.from_numpy(np.ascontiguousarray(batch.observations)).permute(0, 3, 1, 2)
    features: Tensor = agent.convolutions(images)
    return features


def _norm(loss: Tensor, parameters: Iterable[Tensor], keep: bool = False) -> float:
    gradients = torch.autograd.grad(loss, list(parameters), retain_graph=keep)
    return float(torch.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt())


def gradient_table(root: Path) -> str:
    """The measured norms, one row per run."""
    path = root / FILE
    if not path.exists():
        return "Not measured yet.\n"
    header = ["task", "seed", "optimizers", "convolutions: critic / similarity", "actor: actor / similarity"]
    rows = [
        [
            *(row["task"], str(row["seed"]), row["optimizer"]),
            f"{row['critic_convolutions']:.2g} / {row['similarity_convolutions']:.2g}",
            f"{row['actor_hidden']:.2g} / {row['similarity_hidden']:.2g}",
        ]
        for row in json.loads(path.read_text())
    ]
    return markdown(header, rows)


def main(runs: Annotated[Sequence[Path], tyro.conf.Positional], out: Path = Path("results")) -> None:
    """Measure the gradients of finished runs.

    Args:
        runs: Run folders.
        out: Folder of results.
    """
    torch.set_num_threads(1)
    rows = [measure(path) for path in runs]
    (out / FILE).parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out / FILE, json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(tyro.cli(main))

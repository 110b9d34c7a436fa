"""PPO in one file, in the style of CleanRL, with policy similarity embeddings; the added lines are marked `# +`.

python examples/cleanrl_ppo_pse.py --steps 20000
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

from pisces.envs.minigrid import LevelEnv
from pisces.losses import ContrastiveMetricLoss  # +
from pisces.pairs import GreedyPairs  # +

LEVELS = (150, 151, 152, 153)
STEPS, EPOCHS, BATCH, GAMMA, LAMBDA, CLIP = 64, 4, 64, 0.97, 0.95, 0.2


class Agent(nn.Module):
    """An encoder with a policy and a value on top of it."""

    def __init__(self, inputs: int, actions: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.policy, self.value = nn.Linear(64, actions), nn.Linear(64, 1)

    def forward(self, observations: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        """Returns the action distribution and the values [n]."""
        features = self.encoder(observations.float() / 255)
        return Categorical(logits=self.policy(features)), self.value(features).squeeze(1)


def advantages(rewards, dones, values, last_value):
    """Generalized advantage estimation of a rollout [steps, environments]."""
    result, running = torch.zeros_like(rewards), torch.zeros_like(last_value)
    following = last_value
    for step in reversed(range(len(rewards))):
        alive = 1 - dones[step]
        error = rewards[step] + GAMMA * following * alive - values[step]
        running = error + GAMMA * LAMBDA * alive * running
        result[step], following = running, values[step]
    return result


def train(steps: int, weight: float = 0.1, seed: int = 0) -> list[float]:
    """Trains for a number of environment steps; returns the similarity loss after each rollout."""
    torch.manual_seed(seed)
    envs = gym.vector.SyncVectorEnv(
        [lambda level=level: LevelEnv("crossing", level) for level in LEVELS],
        autoreset_mode=gym.vector.AutoresetMode.SAME_STEP,
    )
    agent = Agent(int(np.prod(envs.single_observation_space.shape)), int(envs.single_action_space.n))
    pairs = GreedyPairs([LevelEnv("crossing", level) for level in LEVELS], keep="best", seed=seed)  # +
    similarity = ContrastiveMetricLoss(64, scale=1.0, match_within=0.5)  # +
    optimizer = torch.optim.Adam([*agent.parameters(), *similarity.parameters()], lr=1e-3)  # +

    @torch.no_grad()  # +
    def greedy(observations):  # +
        return agent(torch.from_numpy(observations))[0].probs.argmax(dim=1).numpy()  # +

    observation, _ = envs.reset(seed=seed)
    losses = []
    for _ in range(max(1, steps // (STEPS * len(LEVELS)))):
        rollout = {name: [] for name in ("seen", "actions", "log_probs", "values", "rewards", "dones")}
        for _ in range(STEPS):
            seen = torch.from_numpy(np.array(observation))
            with torch.no_grad():
                distribution, value = agent(seen)
            action = distribution.sample()
            observation, reward, terminated, truncated, _ = envs.step(action.numpy())
            done = torch.as_tensor(terminated | truncated, dtype=torch.float32)
            step = (seen, action, distribution.log_prob(action), value, torch.as_tensor(reward).float(), done)
            for name, entry in zip(rollout, step, strict=True):
                rollout[name].append(entry)
        data = {name: torch.stack(entries) for name, entries in rollout.items()}
        with torch.no_grad():
            last_value = agent(torch.from_numpy(np.array(observation)))[1]
        gains = advantages(data["rewards"], data["dones"], data["values"], last_value)
        targets = gains + data["values"]
        flat = {name: entries.flatten(0, 1) for name, entries in data.items()}
        gains, targets = gains.flatten(), targets.flatten()
        for _ in range(EPOCHS):
            for rows in torch.randperm(len(gains)).split(BATCH):
                distribution, value = agent(flat["seen"][rows])
                ratio = (distribution.log_prob(flat["actions"][rows]) - flat["log_probs"][rows]).exp()
                gain = (gains[rows] - gains[rows].mean()) / (gains[rows].std() + 1e-8)
                policy_loss = -torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
                loss = (
                    policy_loss + 0.5 * (value - targets[rows]).square().mean() - 0.01 * distribution.entropy().mean()
                )
                pair = pairs.sample(greedy)  # +
                x, y = (agent.encoder(part.float() / 255) for part in (pair.observations_x, pair.observations_y))  # +
                similarity_loss = similarity(x, y, pair.metric)  # +
                loss = loss + weight * similarity_loss  # +
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        losses.append(similarity_loss.item())
    return losses


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--weight", type=float, default=0.1)
    arguments = parser.parse_args()
    print("similarity loss per rollout:", [round(loss, 3) for loss in train(arguments.steps, arguments.weight)])

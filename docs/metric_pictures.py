"""Draws the pictures of docs/metrics.md: python docs/metric_pictures.py."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

from pisces.metrics import (
    FiniteMDP,
    bisimulation_metric,
    optimal_policy,
    pi_bisimulation_metric,
    policy_divergence,
    policy_similarity_metric,
    transfer_policy,
)

IMAGES = Path(__file__).parent / "images"
DISCOUNT = 0.99


def frozen_lake() -> None:
    """Distances of all fields of FrozenLake 8x8 to the start, by both metrics, with the optimal actions."""
    environment = gymnasium.make("FrozenLake-v1", map_name="8x8")
    mdp = FiniteMDP.from_gymnasium(environment)
    policy = optimal_policy(mdp, DISCOUNT)
    fields = environment.unwrapped.desc.astype(str)
    results = {
        "policy similarity metric": policy_similarity_metric(mdp, discount=DISCOUNT, policy_x=policy),
        "bisimulation metric": bisimulation_metric(mdp, discount=DISCOUNT),
    }
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
    for axis, (name, result) in zip(axes, results.items(), strict=True):
        image = axis.imshow(result.distance[0].reshape(8, 8), cmap="viridis")
        figure.colorbar(image, ax=axis, shrink=0.85)
        for state, field in enumerate(fields.ravel()):
            text = field if field in "HG" else "←↓→↑"[policy[state].argmax()]
            color = "black" if result.distance[0, state] > 0.6 * result.distance[0].max() else "white"
            axis.text(state % 8, state // 8, text, ha="center", va="center", color=color, fontsize=9)
        axis.set_title(f"{name}: distance to the start (top left)", fontsize=10)
        axis.set_xticks([])
        axis.set_yticks([])
        print(f"FrozenLake 8x8, {name}: error {result.error_bound:.1e}, {result.iterations} rounds")
    figure.savefig(IMAGES / "frozen_lake.png", dpi=110)


def taxi() -> None:
    """All distances of Taxi, states sorted by passenger, destination and then position."""
    mdp = FiniteMDP.from_gymnasium(gymnasium.make("Taxi-v4"))
    state = np.arange(500)
    position, passenger, destination = state // 20, state // 4 % 5, state % 4
    order = np.append(np.lexsort((position, destination, passenger)), 500)
    results = {
        "policy similarity metric": policy_similarity_metric(mdp, discount=DISCOUNT),
        "bisimulation metric": bisimulation_metric(mdp, discount=DISCOUNT),
    }
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
    for axis, (name, result) in zip(axes, results.items(), strict=True):
        image = axis.imshow(result.distance[np.ix_(order, order)], cmap="viridis", interpolation="nearest")
        figure.colorbar(image, ax=axis, shrink=0.85)
        axis.set_title(name, fontsize=10)
        axis.set_xticks(50 + 100 * np.arange(5), ["red", "green", "yellow", "blue", "in taxi"], fontsize=8)
        axis.set_yticks(50 + 100 * np.arange(5), ["red", "green", "yellow", "blue", "in taxi"], fontsize=8)
        print(f"Taxi, {name}: error {result.error_bound:.1e}, {result.iterations} rounds")
    figure.savefig(IMAGES / "taxi.png", dpi=110)


def loops(*rewards: tuple[float, float]) -> FiniteMDP:
    """States that both actions leave as they are: one row of rewards each."""
    return FiniteMDP(np.stack([np.eye(len(rewards))] * 2, axis=1), np.array(rewards))


def theorem_1() -> None:
    """Theorem 1 with three metrics, over the size of the rewards: why it holds for PSM only."""
    discount, rewards = 0.9, np.logspace(-3, 0, 13)
    metrics = {
        "PSM": policy_similarity_metric,
        "π*-bisimulation": pi_bisimulation_metric,
        "bisimulation": bisimulation_metric,
    }
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained", sharey=True)
    for axis, (name, metric) in zip(axes, metrics.items(), strict=True):
        sides = []
        for reward in rewards:
            x, y = loops((reward, 0.0), (0.0, 3 * reward)), loops((0.0, reward))
            policy_x, policy_y = (optimal_policy(mdp, discount) for mdp in (x, y))
            distance = metric(x, y, discount=discount).distance
            divergence = policy_divergence(y, transfer_policy(distance, policy_x), policy_y, discount)[0]
            sides.append((divergence, (1 + discount) / (1 - discount) * distance.min()))
        left, right = np.transpose(sides)
        axis.plot(rewards, left, color="black", marker="o", label="divergence of the transferred policy")
        axis.plot(rewards, right, color="tab:orange", label="Theorem 1's right side")
        axis.fill_between(rewards, left, right, where=(left > right).tolist(), color="tab:red", alpha=0.2)
        axis.set(xscale="log", xlabel="reward r", title=name, yscale="symlog")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].plot([], [], color="tab:red", alpha=0.3, linewidth=8, label="violated")
    axes[0].legend(frameon=False, fontsize=8, loc="upper left")
    figure.savefig(IMAGES / "theorem_1.png", dpi=110)


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    frozen_lake()
    taxi()
    theorem_1()

"""Draws the pictures of docs/metrics.md: python docs/metric_pictures.py."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt

from pisces.metrics import FiniteMDP, bisimulation_metric, optimal_policy, policy_similarity_metric

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


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    frozen_lake()
    taxi()

"""A page and a table that compare two agents by their episodes."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pisces.metrics import BehaviorComparison, StateMatches
from pisces.reports.figures import LINE_COLORS, heat_map, plain_axes, plain_text
from pisces.reports.page import html as page

SHOWN_STATES = 20
"""Number of states without a match that the page lists per agent."""
HEADER = ("agent", "episode", "step", "nearest_episode", "nearest_step", "distance", "matched", "visited_by_other")
EXPLANATION = (
    "Two states are as far apart as the discounted costs between the actions from there on. A state's match is the "
    "other agent's state at the smallest distance. Two episodes are as far apart as their states are from the nearest "
    "state of the other episode, on average. The difference is the mean distance between episodes of different agents "
    "minus that between episodes of one agent, so agents that behave alike have a difference near zero."
)


@dataclass(frozen=True, eq=False)
class Agent:
    """One of two compared agents."""

    name: str
    """Its name."""
    episodes: Sequence[str]
    """The names of its episodes."""
    states: StateMatches
    """Its states and their matches."""


def behavior_page(found: BehaviorComparison, agents: tuple[Agent, Agent]) -> str:
    """Returns a page with the difference, the distances between episodes and the states without a match."""
    a, b = agents
    title = f"{a.name} and {b.name}"
    body = [
        f"<h1>{escape(title)}</h1>",
        page.paragraph(found.text().splitlines()[0] + ".", "lead"),
        page.table(("agent", "episodes", "states", "matched", "visited by this agent only"), map(_summary, agents)),
        page.paragraph(EXPLANATION, "soft"),
        page.row(
            [
                page.image(
                    episodes_figure(found, agents), "Distance of every two episodes, those of one agent included"
                ),
                page.image(steps_figure(found, agents), "Distance of every state to its match, by step"),
            ]
        ),
        *_unmatched(a, b, found.threshold),
        *_unmatched(b, a, found.threshold),
    ]
    return page.page(f"pisces: {title}", body)


def states_table(agents: tuple[Agent, Agent]) -> str:
    """Returns all states and their matches as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for agent, other in (agents, agents[::-1]):
        writer.writerows((agent.name, *row) for row in _rows(agent, other, range(len(agent.states))))
    return text.getvalue()


def _rows(agent: Agent, other: Agent, chosen: Any) -> Iterator[tuple[str, ...]]:
    states = agent.states
    for n in chosen:
        yield (
            agent.episodes[states.episode[n]],
            str(states.step[n]),
            other.episodes[states.nearest_episode[n]],
            str(states.nearest_step[n]),
            f"{states.distance[n]:.6g}",
            "yes" if states.matched[n] else "no",
            "yes" if states.visited[n] else "no",
        )


def _summary(agent: Agent) -> tuple[str, ...]:
    states = agent.states
    shares = (f"{states.matched.mean():.0%}", f"{1 - states.visited.mean():.0%}")
    return (agent.name, str(len(agent.episodes)), str(len(states)), *shares)


def episodes_figure(found: BehaviorComparison, agents: tuple[Agent, Agent]) -> Figure:
    """Draws the distances of all episodes of both agents."""
    whole = np.block([[found.within_a, found.between], [found.between.T, found.within_b]])
    names = plain_text(f"episodes of {agents[0].name}, then of {agents[1].name}")
    figure = heat_map(whole, "between episodes", names, names)
    for draw in (figure.axes[0].axhline, figure.axes[0].axvline):
        draw(len(found.between) - 0.5, color="#0072b2", linewidth=1)
    return figure


def steps_figure(found: BehaviorComparison, agents: tuple[Agent, Agent]) -> Figure:
    """Draws the distance of every state to its match by step."""
    figure = Figure(figsize=(5.4, 3.9), layout="constrained")
    axes = figure.subplots()
    for agent, color in zip(agents, LINE_COLORS[1:], strict=False):
        name = plain_text(agent.name)
        axes.plot(agent.states.step, agent.states.distance, ".", color=color, alpha=0.5, markersize=4, label=name)
    axes.axhline(found.threshold, color=LINE_COLORS[0], linewidth=1, label="threshold")
    axes.set_xlabel("step")
    axes.set_ylabel("distance to the match")
    axes.legend(frameon=False, fontsize=9)
    plain_axes(axes)
    return figure


def _unmatched(agent: Agent, other: Agent, threshold: float) -> list[str]:
    alone = np.flatnonzero(~agent.states.matched)
    heading = f"<h2>States of {escape(agent.name)} without a match</h2>"
    if not alone.size:
        return [heading, page.paragraph(f"Every state has a match within {threshold:g}.")]
    chosen = alone[np.argsort(-agent.states.distance[alone], kind="stable")][:SHOWN_STATES]
    text = f"{alone.size} of {len(agent.states)} states; the furthest {len(chosen)}:"
    header = ("episode", "step", f"nearest episode of {other.name}", "step", "distance", "visited by both")
    rows = ((*row[:5], row[6]) for row in _rows(agent, other, chosen))
    return [heading, page.paragraph(text), page.table(header, rows)]

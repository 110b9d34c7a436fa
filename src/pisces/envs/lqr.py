"""Linear-quadratic control with distractors (Sec. 6.1 and App. G, arXiv:2101.05265).

s' = A s + B a, observation o = [0.1 W_c; W_d] s, cost sum_t s'Qs + a'Ra without the paper's factor 1/2. A seed decides
what all environments share (A, W_c); an environment is one semi-orthogonal W_d. A policy is a matrix K, a = K o.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, SupportsFloat, get_args

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from pisces.errors import UserError, unknown_name
from pisces.validation import check_finite, check_seed, freeze

FloatArray = NDArray[np.float64]
Role = Literal["train", "validation", "test"]

STATES = 20
"""Size of the hidden state, and of the action."""
DYNAMICS_SCALE = 0.8
STATE_FEATURE_SCALE = 0.1
MATRICES = ("dynamics", "control", "state_cost", "action_cost", "state_features")
"""The arrays of a `LinearSystem`, which are read-only."""
_SYSTEM_STREAM, _START_STREAM = 0, 1
_ROLE_STREAMS: dict[str, int] = {"train": 2, "validation": 3, "test": 4}


@dataclass(frozen=True, eq=False)
class LinearSystem:
    """The part of the problem that all environments of a seed share."""

    dynamics: FloatArray
    """A, [s, s]; its eigenvalues lie within the unit circle, so that the zero policy has a finite cost."""
    control: FloatArray
    """B, [s, a]."""
    state_cost: FloatArray
    """Q, [s, s], symmetric and positive definite."""
    action_cost: FloatArray
    """R, [a, a], symmetric and positive definite."""
    state_features: FloatArray
    """The part of the observation that does not change between environments, 0.1 W_c, [f, s]."""

    def __post_init__(self) -> None:
        for name in MATRICES:
            value = np.array(getattr(self, name), dtype=np.float64)
            check_finite(name, value)
            object.__setattr__(self, name, value)
        freeze(self, MATRICES)
        self._check_shapes()
        radius = spectral_radius(self.dynamics)
        if radius >= 1:
            raise UserError(f"expected dynamics with a spectral radius below 1, got {radius:.6g}")
        for name in ("state_cost", "action_cost"):
            matrix = getattr(self, name)
            if not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix).min() <= 0:
                raise UserError(f"expected a symmetric positive definite {name}, got another matrix")

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        freeze(self, MATRICES)

    def _check_shapes(self) -> None:
        if self.dynamics.ndim != 2 or self.dynamics.shape[0] != self.dynamics.shape[1]:
            raise UserError(f"expected dynamics of shape [s, s], got {self.dynamics.shape}")
        states = self.dynamics.shape[0]
        if self.control.ndim != 2 or self.control.shape[0] != states:
            raise UserError(f"expected control of shape [{states}, a], got {self.control.shape}")
        if self.state_features.ndim != 2 or self.state_features.shape[1] != states:
            raise UserError(f"expected state_features of shape [f, {states}], got {self.state_features.shape}")
        for name, size in (("state_cost", states), ("action_cost", self.control.shape[1])):
            if getattr(self, name).shape != (size, size):
                raise UserError(f"expected {name} of shape {(size, size)}, got {getattr(self, name).shape}")

    @cached_property
    def cost_to_go(self) -> FloatArray:
        """P of the Riccati equation, [s, s]: the optimal cost from s is s'Ps."""
        from scipy import linalg  # slow to import, and configs need this module's constants only

        return np.asarray(
            linalg.solve_discrete_are(self.dynamics, self.control, self.state_cost, self.action_cost), dtype=np.float64
        )

    @cached_property
    def optimal_gain(self) -> FloatArray:
        """The optimal controller with access to the state, [a, s]: a = -(R + B'PB)^-1 B'PA s."""
        weighted = self.control.T @ self.cost_to_go
        return np.asarray(-np.linalg.solve(self.action_cost + weighted @ self.control, weighted @ self.dynamics))

    @property
    def oracle_cost(self) -> float:
        """The least expected cost from a standard normal start, tr(P)."""
        return float(np.trace(self.cost_to_go))

    def features(self, distractors: ArrayLike) -> FloatArray:
        """The matrix that turns states into observations, [0.1 W_c; W_d] of shape [f + n_d, s]."""
        block = np.asarray(distractors, dtype=np.float64)
        if block.ndim != 2 or block.shape[1] != len(self.dynamics):
            raise UserError(f"expected distractors of shape [n_d, {len(self.dynamics)}], got {block.shape}")
        check_finite("distractors", block)
        return np.concatenate([self.state_features, block])


def spectral_radius(matrix: FloatArray) -> float:
    """The largest modulus of an eigenvalue."""
    return float(np.abs(np.linalg.eigvals(matrix)).max())


def expected_cost(system: LinearSystem, gain: ArrayLike) -> float:
    """The expected cost of a = gain s from a standard normal start, exactly; infinite for an unstable closed loop.

    tr(P) with P = L'PL + Q + F'RF and L = A + BF, F the gain [a, s].
    """
    matrix = np.asarray(gain, dtype=np.float64)
    if matrix.shape != system.control.T.shape:
        raise UserError(f"expected a gain of shape {system.control.T.shape}, got {matrix.shape}")
    check_finite("gain", matrix)
    closed = system.dynamics + system.control @ matrix
    if spectral_radius(closed) >= 1:
        return float("inf")
    from scipy import linalg  # as above

    constant = system.state_cost + matrix.T @ system.action_cost @ matrix
    return float(np.trace(linalg.solve_discrete_lyapunov(closed.T, constant)))


def policy_cost(system: LinearSystem, distractors: ArrayLike, policy: ArrayLike) -> float:
    """The expected cost of a policy on observations, K of shape [a, f + n_d], in one environment."""
    features, matrix = system.features(distractors), np.asarray(policy, dtype=np.float64)
    shape = (system.control.shape[1], len(features))
    if matrix.shape != shape:
        raise UserError(f"expected a policy of shape {shape}, got {matrix.shape}")
    return expected_cost(system, matrix @ features)


def semi_orthogonal(rows: int, columns: int, rng: np.random.Generator) -> FloatArray:
    """A random matrix with orthonormal columns: thin QR of a uniform one, columns signed by the diagonal of R.

    All entries of the uniform matrix are positive, so such matrices share one direction (a cosine of about 0.99).
    """
    if rows < columns:
        raise UserError(f"expected at least {columns} rows for {columns} orthonormal columns, got {rows}")
    q, r = np.linalg.qr(rng.random((rows, columns)))
    return np.asarray(q * np.sign(np.diag(r)), dtype=np.float64)


def make_system(seed: int) -> LinearSystem:
    """The system of a seed: A a random orthogonal matrix times 0.8, W_c random orthogonal, B = Q = R = I."""
    rng = _generator(seed, _SYSTEM_STREAM)
    identity = np.eye(STATES)
    return LinearSystem(
        dynamics=DYNAMICS_SCALE * semi_orthogonal(STATES, STATES, rng),
        control=identity,
        state_cost=identity,
        action_cost=identity,
        state_features=STATE_FEATURE_SCALE * semi_orthogonal(STATES, STATES, rng),
    )


def make_distractors(seed: int, count: int, role: Role = "train", index: int = 0) -> FloatArray:
    """One environment's W_d, [count, 20]; seeds, roles and indices have separate random streams."""
    if role not in get_args(Role):
        raise unknown_name("role", role, get_args(Role))
    if count < STATES:
        raise UserError(f"expected at least {STATES} distractors, got {count}")
    if index < 0:
        raise UserError(f"expected an index of at least 0, got {index}")
    return semi_orthogonal(count, STATES, _generator(seed, _ROLE_STREAMS[role], index))


def start_states(seed: int, count: int) -> FloatArray:
    """Hidden start states shared by the environments of a seed, standard normal, [count, 20]."""
    return _generator(seed, _START_STREAM).standard_normal((count, STATES))


def optimal_trajectories(system: LinearSystem, starts: FloatArray, steps: int) -> tuple[FloatArray, FloatArray]:
    """Plays the optimal controller from each start: hidden states [M, T, s] and actions [M, T, a]."""
    states = np.empty((len(starts), steps, starts.shape[1]))
    closed = system.dynamics + system.control @ system.optimal_gain
    current = starts
    for step in range(steps):
        states[:, step] = current
        current = current @ closed.T
    return states, states @ system.optimal_gain.T


class DistractorLQREnv(gym.Env[NDArray[np.float64], NDArray[np.float64]]):
    """One environment of the family; the reward is the negative cost of a step, and episodes are truncated."""

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's convention)

    def __init__(
        self,
        distractors: int = 500,
        problem_seed: int = 0,
        role: Role = "train",
        index: int = 0,
        max_steps: int = 100,
        render_mode: None = None,
    ) -> None:
        if render_mode is not None:
            raise UserError(f"expected render_mode None, got {render_mode!r}")
        if not (isinstance(max_steps, int | np.integer) and max_steps >= 1):
            raise UserError(f"expected max_steps of at least 1, got {max_steps!r}")
        self.system = make_system(problem_seed)
        self.features = self.system.features(make_distractors(problem_seed, distractors, role, index))
        self.max_steps, self.render_mode = max_steps, render_mode
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (len(self.features),), np.float64)
        self.action_space = gym.spaces.Box(-np.inf, np.inf, (self.system.control.shape[1],), np.float64)
        self.state = np.zeros(STATES)
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Starts an episode from a standard normal state, or from `options={"state": s}`."""
        super().reset(seed=seed)
        unknown = set(options or {}) - {"state"}
        if unknown:
            raise unknown_name("option", min(unknown), ["state"])
        state = (options or {}).get("state", None)
        self.state = self.np_random.standard_normal(STATES) if state is None else _as_vector("state", state)
        self._steps = 0
        return self.features @ self.state, {"state": self.state.copy()}

    def step(self, action: ArrayLike) -> tuple[FloatArray, SupportsFloat, bool, bool, dict[str, Any]]:
        """Moves the hidden state, which `info["state"]` reports; the reward is the negative cost."""
        control, system = _as_vector("action", action), self.system
        cost = self.state @ system.state_cost @ self.state + control @ system.action_cost @ control
        self.state = system.dynamics @ self.state + system.control @ control
        self._steps += 1
        return (
            self.features @ self.state, -float(cost), False, self._steps >= self.max_steps, {"state": self.state.copy()}
        )  # fmt: skip


def _as_vector(name: str, values: ArrayLike) -> FloatArray:
    vector = np.array(values, dtype=np.float64)
    if vector.shape != (STATES,):
        raise UserError(f"expected {name} of shape {(STATES,)}, got {vector.shape}")
    check_finite(name, vector)
    return vector


def _generator(seed: int, *stream: int) -> np.random.Generator:
    check_seed(seed)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=stream))

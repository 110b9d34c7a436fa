"""Transitions of MDPs in the forms that users have them, as one sparse matrix."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse

from pisces.errors import UserError, unknown_name
from pisces.validation import as_reals

Axes = Literal["state-action", "action-state"]
"""Which axis of the transitions comes first: [S, A, S] or [A, S, S]."""
AXES = ("state-action", "action-state")
HINT = 'pass axes="action-state" for [A, S, S] or axes="state-action" for [S, A, S]'


def transition_rows(
    transitions: Any, reward_shape: tuple[int, ...], axes: str | None
) -> tuple[scipy.sparse.csr_array, int]:
    """Returns rows [S * A, S], row state * A + action, and the number of actions; see `FiniteMDP`."""
    if axes is not None and axes not in AXES:
        raise unknown_name("axes", axes, AXES)
    if scipy.sparse.issparse(transitions):
        rows, actions = _from_sparse(transitions, reward_shape)
        return _reordered(rows, actions, axes or "state-action"), actions
    if _is_list_of_matrices(transitions):
        return _from_matrices(transitions, axes)
    dense = as_reals("transitions", transitions)
    if dense.ndim != 3 or 0 in dense.shape:
        raise UserError(
            f"transitions must have shape [S, A, S] with at least one state and action, got {list(dense.shape)}"
            + ("; a Markov chain [S, S] is transitions[:, None, :]" if dense.ndim == 2 else "")
        )
    if axes == "action-state":
        dense = dense.transpose(1, 0, 2)
    if dense.shape[0] != dense.shape[2]:
        raise UserError(f"transitions must have shape [S, A, S], got {list(dense.shape)}; {HINT}")
    return scipy.sparse.csr_array(dense.reshape(-1, dense.shape[2])), dense.shape[1]


def _is_list_of_matrices(transitions: Any) -> bool:
    return isinstance(transitions, list | tuple) and any(
        scipy.sparse.issparse(one) or isinstance(one, np.ndarray) for one in transitions
    )


def _from_matrices(matrices: Any, axes: str | None) -> tuple[scipy.sparse.csr_array, int]:
    # One matrix [S, S] per action or one [A, S] per state; the shape tells which, unless there are as many of both.
    sparse = [_as_sparse(matrix) for matrix in matrices]
    if len({matrix.shape for matrix in sparse}) != 1:
        raise UserError(f"transitions must be matrices of one shape, got {sorted({one.shape for one in sparse})}")
    count, (height, states) = len(sparse), sparse[0].shape
    if axes is None and count == height == states > 1:
        raise UserError(f"{count} matrices [{height}, {states}] can be read in two ways; {HINT}")
    if axes is None:
        axes = "action-state" if height == states else "state-action"
    actions = count if axes == "action-state" else height
    if (height if axes == "action-state" else count) != states:
        raise UserError(f"transitions must be A matrices [S, S], got {count} of shape [{height}, {states}]; {HINT}")
    stacked = scipy.sparse.csr_array(scipy.sparse.vstack(sparse))
    return _reordered(stacked, actions, axes), actions


def _from_sparse(transitions: Any, reward_shape: tuple[int, ...]) -> tuple[scipy.sparse.csr_array, int]:
    rows = _as_sparse(transitions)
    actions = reward_shape[1] if len(reward_shape) == 2 else max(1, rows.shape[0] // max(1, rows.shape[1]))
    if 0 in rows.shape or rows.shape[0] != rows.shape[1] * actions:
        raise UserError(f"sparse transitions must have shape [S * A, S] with A = {actions}, got {list(rows.shape)}")
    return rows, actions


def _as_sparse(matrix: Any) -> scipy.sparse.csr_array:
    values = matrix if scipy.sparse.issparse(matrix) else as_reals("transitions", matrix)
    if values.ndim != 2 or values.dtype.kind not in "biuf":
        raise UserError(f"transitions must be real matrices, got {values.dtype} {list(values.shape)}")
    rows = scipy.sparse.csr_array(values, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    return rows


def _reordered(rows: scipy.sparse.csr_array, actions: int, axes: str) -> scipy.sparse.csr_array:
    if axes == "state-action":
        return rows
    states = rows.shape[1]
    order = (np.arange(actions)[None, :] * states + np.arange(states)[:, None]).ravel()
    return scipy.sparse.csr_array(rows[order])

"""Metrics of requested pairs of states: only pairs that they lead to are stored."""

"""Agents that learn with behavioural losses."""

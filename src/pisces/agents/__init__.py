"""Agents that learn with behavioral losses."""

"""Imitation of expert episodes: the agent of the jumping task."""

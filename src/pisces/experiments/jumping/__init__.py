"""Imitation on the jumping task."""

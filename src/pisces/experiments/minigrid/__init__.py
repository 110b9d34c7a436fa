"""Cloning and PPO with and without behavioral losses on levels of MiniGrid."""

"""PPO with and without policy similarity embeddings on levels of a crossing."""

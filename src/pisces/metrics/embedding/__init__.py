"""Embeddings compared with behavioral metrics."""

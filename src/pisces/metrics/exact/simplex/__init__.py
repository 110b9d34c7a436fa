"""The transportation simplex, compiled."""

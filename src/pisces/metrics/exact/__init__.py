"""Certified solver for behavioral metrics between Markov chains and MDPs."""

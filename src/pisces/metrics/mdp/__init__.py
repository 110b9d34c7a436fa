"""Finite MDPs: construction, planning."""

"""Behavioral similarity for reinforcement learning.

`import pisces` is cheap on purpose: it loads neither torch nor numba. Import the layer you need,
e.g. ``from pisces.metrics import policy_similarity_metric``.
"""

__version__ = "0.1.0"

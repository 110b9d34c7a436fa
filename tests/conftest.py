"""Settings of the test run."""

from hypothesis import settings

# Compiled kernels make the first example slow; what is slow belongs in benchmarks/, not in deadlines.
settings.register_profile("pisces", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("pisces")

"""An experiment whose runs take a second, for tests of what runs experiments."""

import os
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture
def fake(monkeypatch):
    """Makes jobs of the experiment, which other Python processes can import too."""
    from fake_experiment import fake_jobs

    before = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), *([before] if before else [])]))
    return fake_jobs

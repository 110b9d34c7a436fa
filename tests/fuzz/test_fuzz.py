"""A few hundred cases of the fuzzer; `make fuzz` runs more."""

import pytest
from fuzzer import fuzz, summary
from mutations import mutate_json

pytest.importorskip("optuna")

CASES, COMMANDS, SEED = 470, 30, 24


@pytest.fixture(scope="module")
def counts():
    return fuzz(CASES, COMMANDS, SEED)


def test_nothing_fails(counts):
    failures = [failure for one in counts.values() for failure in one.failures]
    assert not failures, "\n".join(failures[:5])
    assert summary(counts)["cases"] == CASES + COMMANDS


def test_cases_of_every_kind_are_refused(counts):
    assert {name for name, one in counts.items() if not one.refused} <= {
        "results",
        "study",
    }  # unusable results are listed


def test_the_fuzzer_can_fail(monkeypatch):
    """Without the checksum of the results, changed numbers are shown."""
    from pisces.reports import results

    monkeypatch.setattr(results, "verify_result", lambda path, content: None)
    monkeypatch.setattr("fuzzer.TARGETS", [one for one in __import__("targets").TARGETS if one.name == "results"])
    assert fuzz(200, 0, SEED)["results"].failures


def test_json_is_mutated_inside():
    import random

    found = {mutate_json(random.Random(seed), b'{"a": [1, {"b": 2}]}') for seed in range(50)}
    assert len(found) > 10

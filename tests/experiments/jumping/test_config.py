import numpy as np
import pytest

from pisces.errors import UserError
from pisces.experiments.jumping.config import COLOR_METHODS, METHODS, PRESETS, JumpingConfig, TransferSettings
from pisces.runs.store import config_hash


def make(method, preset="paper", **arguments):
    return JumpingConfig.make(method, preset, **arguments)


# Method, learning rate, l2, dropout, temperature, coefficient: Tables 5 and 7 of the paper's appendix.
PUBLISHED = [
    ("dropout+l2", 4e-3, 4.3e-4, 0.3, None, None),
    ("pse", 3.2e-3, 1e-5, 0, 1.0, 10.0),
    ("randconv", 7e-3, 0, 0, None, None),
    ("randconv+pse", 2.6e-3, 0, 0, 0.5, 5.0),
    ("randconv+psm-cme", 4e-3, 0, 0, 1.0, 5.0),
    ("randconv+psm-l2", 5e-4, 0, 0, None, 0.1),
    ("randconv+pi-bisimulation-cme", 4.7e-4, 0, 0, 0.5, 0.1),
    ("randconv+pi-bisimulation", 1e-4, 0, 0, None, 1e-6),
]
# The same of Table 6, the task with colors.
PUBLISHED_COLORS = [
    ("dropout+l2", 4e-3, 4.3e-4, 0.3, None, None),
    ("pse", 6e-3, 7e-5, 0, 0.5, 5.0),
    ("randconv", 5e-3, 0, 0, None, None),
    ("randconv+pse", 2.6e-3, 0, 0, 0.5, 5.0),
]


@pytest.mark.parametrize(
    ("methods", "row"), [(METHODS, row) for row in PUBLISHED] + [(COLOR_METHODS, row) for row in PUBLISHED_COLORS]
)
def test_methods_have_the_published_hyperparameters(methods, row):
    name, rate, l2, dropout, temperature, coefficient = row
    settings = methods[name]
    assert (settings.learning_rate, settings.l2_coefficient, settings.dropout) == (rate, l2, dropout)
    assert (settings.augmentation == "randconv") == name.startswith("randconv")
    assert (settings.auxiliary == "none") == (coefficient is None)
    if coefficient is not None:
        assert settings.coefficient == coefficient
        assert settings.metric == ("pi-bisimulation" if "bisimulation" in name else "psm")
        assert settings.auxiliary == ("l2" if temperature is None else "contrastive")
    if temperature is not None:
        assert settings.temperature == temperature
    assert (settings.epochs, settings.batch_size, settings.scale, settings.learning_rate_decay) == (
        2000,
        256,
        0.01,
        0.999,
    )
    assert settings.weighted
    assert settings.symmetric


def test_presets_change_the_length_and_the_evaluations_only():
    for preset in PRESETS.values():
        assert set(preset) <= {"epochs", "evaluations", "evaluation_draws"}


def test_presets_never_train_longer_than_the_method():
    learning = {name: one for name, one in METHODS.items() if not isinstance(one, TransferSettings)}
    for method, settings in learning.items():
        for preset in PRESETS:
            short = make(method, preset=preset).settings
            assert short.epochs <= settings.epochs
            assert short.epochs * short.restarts <= PRESETS[preset].get("epochs", settings.epochs * settings.restarts)
    assert make("pse", preset="quick").settings.epochs == 900
    assert make("randconv+shift", preset="quick").settings.epochs == 500


def test_changes_are_what_departs_from_the_method():
    assert make("pse").changes == {}
    assert make("pse", preset="smoke").changes == {}
    config = make("randconv+pse", epsilon=0.2, changes={"weighted": False, "discount": 0.999})
    assert config.changes == {"epsilon": 0.2, "weighted": False}
    assert config.changes_text == "epsilon=0.2, weighted=False"


def test_hash_names_the_config():
    base = config_hash(make("pse"))
    assert base == config_hash(make("pse"))
    others = [
        make("randconv"),
        make("pse", grid="narrow"),
        make("pse", seed=1),
        make("pse", colors=True),
        make("pse", changes={"epochs": 1}),
        make("pse", threads=2),
    ]
    assert len({base, *map(config_hash, others)}) == 1 + len(others)


def test_identity_leaves_defaults_out():
    identity = make("randconv+pse").identity()
    assert "epsilon" not in identity
    assert "batch_size" not in identity["settings"]
    assert identity["settings"]["temperature"] == 0.5


def test_config_round_trip():
    config = make("randconv+pse", preset="quick", grid="narrow", seed=3, epsilon=0.1)
    assert JumpingConfig.from_dict(config.as_dict()) == config
    transfer = make("bisimulation-transfer", changes={"discount": 0.9})
    assert JumpingConfig.from_dict(transfer.as_dict()) == transfer
    with pytest.raises(UserError, match="not a config of jumping runs"):
        JumpingConfig.from_dict({"method": "pse"})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "randconv+pes"}, "did you mean 'randconv\\+pse'"),
        ({"method": "pse", "grid": "wid"}, "did you mean 'wide'"),
        ({"method": "pse", "preset": "papr"}, "did you mean 'paper'"),
        ({"method": "pse", "epsilon": 0.6}, r"epsilon must be in \[0, 0.5\], got 0.6"),
        ({"method": "pse", "epsilon": -0.1}, "epsilon"),
        ({"method": "pse", "seed": -1}, "seed"),
        ({"method": "pse", "threads": 0}, r"threads must be in \[1, 1024\], got 0"),
        ({"method": "pse", "training_tasks": 1}, r"training_tasks must be in \[2, 18\], got 1"),
        ({"method": "pse", "changes": {"learningrate": 1}}, "did you mean 'learning_rate'"),
        ({"method": "pse", "changes": {"network": "rows"}}, "network=rows requires --colors"),
        ({"method": "bisimulation-transfer", "colors": True}, "white obstacles and all training tasks only"),
        ({"method": "bisimulation-transfer", "epsilon": 0.1}, "white obstacles and all training tasks only"),
        ({"method": "bisimulation-transfer", "changes": {"epochs": 1}}, "unknown setting 'epochs'"),
    ],
)
def test_bad_input_is_explained(arguments, message):
    with pytest.raises(UserError, match=message):
        make(**arguments)


def test_what_learns_nothing_has_no_imitation_settings():
    assert make("pse").imitation == METHODS["pse"]
    with pytest.raises(UserError, match="bisimulation-transfer learns nothing"):
        _ = make("bisimulation-transfer").imitation


def test_whole_numbers_name_the_same_run():
    one, other = (make("randconv+pse", changes={"temperature": value}) for value in (2, 2.0))
    assert config_hash(one) == config_hash(other)
    assert one.changes == other.changes
    numpys = make("randconv+pse", changes={"epochs": np.int64(5), "temperature": np.float32(0.25)})
    assert config_hash(numpys) == config_hash(make("randconv+pse", changes={"epochs": 5, "temperature": 0.25}))

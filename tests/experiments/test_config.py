"""What the configs of all experiments have in common."""

import json
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import pytest
from stored_parts import is_part

from pisces.cli import main
from pisces.errors import UserError
from pisces.experiments.config import Config
from pisces.experiments.distracting.config import OF_METHOD, DistractingConfig
from pisces.experiments.jumping.config import JumpingConfig
from pisces.experiments.lqr.config import LQRConfig
from pisces.experiments.minigrid.config import MiniGridConfig
from pisces.experiments.registry import all_experiments
from pisces.runs.store import SCHEMA, RunFolder, config_hash

RESULTS = Path(__file__).parents[2] / "results"
CONFIGS = {
    "jumping": JumpingConfig.make(
        "randconv+pse", "quick", seed=3, grid="narrow", epsilon=0.1, training_tasks=9, threads=2,
        changes={"weighted": False, "learning_rate": 1e-5, "metric": "true"},
    ),
    "colors": JumpingConfig.make("pse", "paper", colors=True, changes={"network": "rows", "restarts": 2}),
    "transfer": JumpingConfig.make("bisimulation-transfer", "paper", grid="narrow", changes={"discount": 0.9}),
    "lqr": LQRConfig.make(
        "psm", "paper", seed=2, distractors=1000, environments=3, changes={"optimizer": "momentum", "max_steps": 9}
    ),
    "distracting": DistractingConfig.make(
        "drq+pse", "cpu", seed=1, task="walker-walk", init="pretrained", variant="dcs-easy", davis="my videos/DAVIS",
        changes={"temperature": 0.1, "steps": 50},
    ),
    "minigrid": MiniGridConfig.make(
        "ppo+pse", "smoke", seed=4, shift="layout", training_levels=4, changes={"scale": 1.0}
    ),
}  # fmt: skip
CELL = LQRConfig.make("psm", "smoke", seed=3, n_seeds=4, distractors=60, environments=3, changes={"max_steps": 9})
EACH = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


@pytest.mark.parametrize("experiment", all_experiments().values(), ids=lambda experiment: experiment.name)
def test_methods_under_their_presets_change_nothing(experiment):
    kind = experiment.config_class
    for method in kind.methods:
        for preset in kind.presets:
            config = kind.make(method, preset)
            assert config.changes == {}
            assert config.options() == {}
            assert kind.from_dict(config.as_dict()) == config
            expected = f"pisces train {experiment.name} --method {method} --preset {preset} --seed 0"
            assert config.command() == expected


@EACH
def test_changes_lead_from_the_method_to_the_config(config):
    options = {name: value for name, value in config.options().items() if name != "seed"}
    overrides = {name: value for name, value in config.changes.items() if name not in config.variations}
    assert overrides
    plain = type(config).make(config.method, config.preset, seed=config.seed, **options)
    assert plain != config
    assert plain.override(overrides) == config
    assert type(config).make(config.method, config.preset, seed=config.seed, changes=overrides, **options) == config


@EACH
def test_overriding_with_the_same_values_changes_nothing(config):
    values = {name: value for group in config.groups.values() for name, value in vars(group).items()}
    for name in OF_METHOD:  # the method of Distracting Control decides about them
        if config.experiment == "distracting":
            values.pop(name)
    same = config.override(values)
    assert (same, config_hash(same)) == (config, config_hash(config))


@EACH
def test_configs_go_through_json(config):
    stored = json.loads(json.dumps(config.as_dict()))
    assert (stored["experiment"], stored["schema"], stored["changes"]) == (config.experiment, SCHEMA, config.changes)
    read = type(config).from_dict(stored)
    assert read == config
    assert config_hash(read) == config_hash(config)
    assert read.changes == config.changes


@EACH
def test_settings_that_were_not_stored_have_their_defaults(config):
    """As if a later version had added all that is at its default."""
    defaults = {name: type(value)() for name, value in config.groups.items()}
    stored = config.as_dict()
    for group, usual in defaults.items():
        stored[group] = {name: value for name, value in stored[group].items() if value != getattr(usual, name)}
    assert type(config).from_dict(stored) == config


class Parsed(Exception):  # noqa: N818 (no error)
    """Carries what a command would have run."""


def parse(command, monkeypatch):
    def stop(experiment, config, device):
        raise Parsed(config)

    program, *words = shlex.split(command)
    assert program == "pisces"
    monkeypatch.setattr("pisces.runs.job.Job", stop)
    with pytest.raises(Parsed) as found:
        main(words)
    return found.value.args[0]


@EACH
def test_the_command_of_a_config_runs_it(config, monkeypatch, tmp_path):
    assert parse(config.command(tmp_path / "the runs"), monkeypatch) == config


def test_the_command_of_a_cell_of_several_seeds_is_a_sweep(monkeypatch, capsys):
    assert CELL.command().startswith("pisces sweep lqr --methods psm --preset smoke --seeds 3-6 ")
    assert parse(CELL.command(), monkeypatch) == CELL
    assert main([*shlex.split(CELL.command("runs"))[1:], "--list"]) == 0
    assert capsys.readouterr().out == CELL.command("runs") + "\n"


def test_listed_commands_run_the_sweep(monkeypatch, capsys):
    words = ["sweep", "jumping", "--methods", "pse,randconv", "--grids", "wide,narrow", "--epsilons", "0.0,0.5"]
    assert main([*words, "--colors", "--seeds", "7", "--preset", "smoke", "--weighted", "False", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    configs = {parse(line, monkeypatch) for line in lines}
    assert len(configs) == len(lines) == 8
    assert {config.colors for config in configs} == {True}
    assert {(config.method, config.grid, config.epsilon) for config in configs} == {
        (method, grid, epsilon)
        for method in ("pse", "randconv") for grid in ("wide", "narrow") for epsilon in (0.0, 0.5)
    }  # fmt: skip


@dataclass(frozen=True)
class ToySettings:
    rate: float = 0.5


@dataclass(frozen=True)
class LaterSettings(ToySettings):
    momentum: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ToyConfig(Config):
    experiment = "toy"
    methods = ("plain",)
    presets = ("usual", "short")
    variations = ("tasks",)

    tasks: int = 3
    wide: bool = False
    settings: ToySettings = field(default_factory=ToySettings)
    kind: ClassVar[type] = ToySettings

    @property
    def where(self):
        return "field"

    def method_settings(self):
        return {"settings": self.kind()}


@dataclass(frozen=True, kw_only=True)
class LaterConfig(ToyConfig):
    """The same a version later: a setting and an option more."""

    noise: float = 0.0
    settings: LaterSettings = field(default_factory=LaterSettings)
    kind: ClassVar[type] = LaterSettings


@pytest.mark.parametrize("arguments", [{}, {"seed": 5, "tasks": 2, "changes": {"rate": 0.25}}])
def test_new_settings_with_defaults_leave_the_names_of_runs_alone(arguments):
    earlier, later = (kind.make("plain", "usual", **arguments) for kind in (ToyConfig, LaterConfig))
    assert config_hash(earlier) == config_hash(later)
    assert RunFolder.of("runs", earlier) == RunFolder.of("runs", later)
    assert LaterConfig.from_dict(earlier.as_dict()) == later
    assert config_hash(replace(later, noise=0.5)) != config_hash(later)
    assert config_hash(later.override({"momentum": 0.5})) != config_hash(later)


def test_labels_name_what_sets_a_run_apart():
    make = ToyConfig.make
    assert make("plain", "usual", seed=3).label == "plain, field"
    changed = make("plain", "short", tasks=2, wide=True, changes={"rate": 0.25})
    assert changed.label == "plain, field, tasks=2, wide, rate=0.25, preset short"
    assert changed.changes == {"rate": 0.25, "tasks": 2}
    assert changed.command() == "pisces train toy --method plain --preset short --tasks 2 --wide --seed 0 --rate 0.25"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "plan"}, "unknown method 'plan'; did you mean 'plain'?"),
        ({"preset": "usal"}, "unknown preset 'usal'; did you mean 'usual'?"),
        ({"task": 3}, "unknown option 'task'; did you mean 'tasks'?"),
        ({"changes": {"rat": 1}}, "unknown setting 'rat'; did you mean 'rate'?"),
        ({"tasks": "many"}, "tasks must be an integer, got 'many'"),
        ({"seed": True}, "seed must be an integer, got True"),
    ],
)
def test_bad_configs_are_explained(arguments, message):
    with pytest.raises(UserError) as error:
        ToyConfig.make(**{"method": "plain", "preset": "usual", **arguments})
    assert message in str(error.value)


@pytest.mark.parametrize("change", [{"speed": 3}, {"settings": None}, {"settings": {"speed": 3}}])
def test_stored_configs_of_another_kind_are_explained(change):
    with pytest.raises(UserError, match="not a config of toy runs"):
        ToyConfig.from_dict({**ToyConfig.make("plain", "usual").as_dict(), **change})


def test_committed_runs_lie_where_their_configs_say():
    paths = sorted(RESULTS.glob("*/*/*/config.json"))
    assert len(paths) > 300
    kinds = {name: experiment.config_class for name, experiment in all_experiments().items()}
    for path in paths:
        stored = json.loads(path.read_text())
        config = kinds[stored["experiment"]].from_dict(stored)
        assert is_part(stored, json.loads(json.dumps(config.as_dict())))
        assert RunFolder.of(RESULTS, config).path == path.parent

from pathlib import Path

from stored_runs import stored_run

from distracting_figures import FIGURE, main
from fill_docs import fill
from pisces.experiments.distracting.config import DistractingConfig
from pisces.experiments.distracting.experiment import Distracting
from pisces.experiments.distracting.tables import distracting_markdown
from pisces.reports.results import StoredRuns
from pisces.runs.store import RunFolder

DOCUMENT = "<!-- table: distracting -->\nold\n<!-- end -->\n<!-- table: distracting-train -->\n<!-- end -->\n"
VALUES = {
    "train_return": 600.0,
    "test_return": 500.0,
    "curve": [{"step": step, "train_return": 300.0, "test_return": 250.0} for step in (2000, 4000)],
}


def config_of(seed=0, **arguments):
    return DistractingConfig.make("drq", "cpu", seed=seed, **arguments)


def test_documents_say_when_there_are_no_runs(tmp_path, capsys):
    assert fill(DOCUMENT, StoredRuns(()), tmp_path).count("No finished run") == 2
    main(tmp_path, tmp_path / "images")
    assert "No finished run" in capsys.readouterr().out
    assert not (tmp_path / "images").exists()


def test_documents_show_the_runs():
    configs = [config_of(), config_of(1), config_of(task="walker-stand")]
    runs = [stored_run(Distracting(), config, **VALUES) for config in configs]
    filled = fill(DOCUMENT, StoredRuns(tuple(runs)), Path("x"))
    assert filled.count("| cpu | random | DrQ |") == 3
    assert distracting_markdown(runs) in filled


def test_curves_are_drawn(tmp_path):
    config = config_of()
    RunFolder.of(tmp_path / "results", config).create(config).write_result(config, VALUES)
    main(tmp_path / "results", tmp_path / "images")
    assert (tmp_path / "images" / FIGURE).read_bytes().startswith(b"\x89PNG")

from dataclasses import asdict

from stored_runs import jumping_run

import jumping_figures
from jumping_figures import main, solved_matrix, study_figures, study_groups
from pisces.envs.jumping import all_tasks, split_tasks


def run_of(method, seed, percent, grid="wide", **options):
    tasks = all_tasks("white")
    solved = round(len(tasks) * percent / 100)
    values = {
        "test_solved_percent": percent,
        "tasks": [[task.obstacle_position, task.floor_height, task.color] for task in tasks],
        "train_tasks": [asdict(task) for task in split_tasks(grid, seed).train],
        "solved": "1" * solved + "0" * (len(tasks) - solved),
        "curve": [{"iteration": k, "test_solved_percent": percent * k / 8} for k in (4, 8)],
    }
    return jumping_run(method, seed, values=values, grid=grid, **options)


RUNS = [
    run_of("randconv", 0, 40.0),
    run_of("randconv", 1, 60.0),
    run_of("randconv+pse", 0, 90.0, "narrow"),
    run_of("randconv", 2, 1.0, preset="quick"),
    run_of("randconv+pse", 0, 30.0, epsilon=0.1),
    run_of("randconv", 3, 2.0, changes={"passthrough_per": "run"}),
]


def test_only_the_methods_own_runs_are_drawn():
    groups = study_groups(RUNS)
    assert {key: len(runs) for key, runs in groups.items()} == {("randconv", "wide"): 2, ("randconv+pse", "narrow"): 1}


def test_cells_without_runs_stay_empty():
    figure = solved_matrix(study_groups(RUNS))
    shown = [axes.get_title() for axes in figure.axes if axes.axison]
    assert shown == ["RandConv, wide: 50 % (n=2)", "RandConv + PSEs, narrow: 90 % (n=1)"]
    assert len(figure.axes) == 6


def test_figures_are_those_whose_runs_are_there(tmp_path, monkeypatch, capsys):
    figures = study_figures(RUNS)
    assert {"jumping_solved", "jumping_curves_wide", "jumping_curves_narrow", "jumping_epsilon"} <= set(figures)
    assert not {"jumping_curves_random", "jumping_colors"} & set(figures)
    drawn = {"jumping_metrics", "jumping_randconv", "jumping_trajectories", "jumping_validation"}
    assert set(study_figures([])) == drawn
    monkeypatch.setattr(jumping_figures, "study_figures", lambda runs: {"jumping_metrics": figures["jumping_solved"]})
    monkeypatch.setattr(jumping_figures, "has_umap", lambda: False)
    (tmp_path / "jumping").mkdir()
    main(tmp_path, tmp_path / "images")
    assert "no embeddings drawn" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "images").iterdir()] == ["jumping_metrics.png"]

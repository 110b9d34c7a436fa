"""The direction of imports: every layer imports only layers to its left."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "pisces"
LAYERS = [
    "errors",
    "files",
    "validation",
    "envs",
    "trajectories",
    "metrics",
    "pairs",
    "losses",
    "augment",
    "agents",
    "integrations",
    "runs",
    "interface",
    "reports",
    "experiments",
    "cli",
]
INTERFACE = {"experiments.config", "experiments.experiment", "experiments.published"}
"""What all experiments have in common stands left of the reports, single experiments to their right."""


def layer_of(name):
    """The layer of a module's name below pisces."""
    parts = name.split(".")
    return "interface" if ".".join(parts[:2]) in INTERFACE else parts[0]


def module_name(path):
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not inside_type_checking(path, node):
            assert node.level == 0, f"{path} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from (name.removeprefix("pisces.") for name in names if name.startswith("pisces."))


def inside_type_checking(path, wanted):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return any(wanted.lineno == child.lineno for child in ast.walk(node) if hasattr(child, "lineno"))
    return False


MODULES = [
    path for path in sorted(SOURCE.rglob("*.py")) if path.parent != SOURCE or path.name in ("files.py", "validation.py")
]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_left(path):
    own = LAYERS.index(layer_of(module_name(path)))
    right = {name for name in imported_modules(path) if LAYERS.index(layer_of(name)) > own}
    assert not right, f"{path.name} imports {right}, which stand to its right"


@pytest.mark.parametrize("name", ["jumping", "lqr", "distracting", "minigrid"])
def test_experiments_do_not_know_each_other(name):
    others = {f"experiments.{other}" for other in ("jumping", "lqr", "distracting", "minigrid") if other != name}
    for path in (SOURCE / "experiments" / name).rglob("*.py"):
        assert not {".".join(module.split(".")[:2]) for module in imported_modules(path)} & others, path


def test_nobody_asks_for_an_experiment_by_name():
    """Reports and runs take experiments as arguments; the command line finds them in the registry."""
    names = ("jumping", "distracting", "lqr", "minigrid")
    for layer in ("runs", "reports"):
        for path in (SOURCE / layer).rglob("*.py"):
            found = [name for name in names if f'"{name}"' in path.read_text()]
            assert not found, f"{path.name} names {found}"


def test_folders_stay_small():
    folders = {}
    for path in set(SOURCE.rglob("*.py")) - set(SOURCE.rglob("__init__.py")):
        folders.setdefault(path.parent, []).append(path.name)
    assert {folder: len(names) for folder, names in folders.items() if len(names) > 14} == {}


@pytest.mark.parametrize("statement", ["import pisces", "import pisces.cli", "import pisces.envs"])
def test_imports_that_must_stay_light(statement):
    script = f"import sys; {statement}; print([m for m in ('torch', 'mujoco', 'numba') if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"


def test_metrics_need_no_extra():
    extras = ("torch", "safetensors", "matplotlib", "orjson", "rich", "tyro", "filelock", "optuna", "minari", "PIL")
    script = (
        f"import sys; sys.modules.update(dict.fromkeys({extras}))\n"
        "import numpy as np, pisces.envs, pisces.trajectories\n"
        "from pisces.metrics import FiniteMDP, bisimulation_metric\n"
        "mdp = FiniteMDP(np.eye(3)[:, None], np.array([[0.0], [0.0], [1.0]]))\n"
        "print(bisimulation_metric(mdp, discount=0.5).distance[0].round(6).tolist())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "[0.0, 0.0, 2.0]", done.stderr


@pytest.mark.parametrize(("module", "extra"), [("torch", "torch"), ("tyro", "cli"), ("rich", "cli")])
def test_a_missing_extra_is_named(module, extra, tmp_path):
    script = (
        "import sys, importlib.abc\n"
        "class Missing(importlib.abc.MetaPathFinder):\n"
        f"    def find_spec(self, name, path, target=None):\n        if name.split('.')[0] == {module!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
        "from pisces.__main__ import main\n"
        "sys.argv = ['pisces', 'train', 'lqr', '--preset', 'smoke', '--out', sys.argv[1]]\n"
        "sys.exit(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", script, "unused"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.strip() == f"pisces: {module} is not installed; run: pip install 'pisces-rl[{extra}]'"


@pytest.mark.parametrize("package", ["losses", "augment", "pairs"])
def test_packages_that_need_torch_name_the_extra(package):
    script = (
        "import sys; sys.modules['torch'] = None\n"
        f"try:\n    import pisces.{package}\nexcept ImportError as error:\n    print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "MissingExtraError torch is not installed; run: pip install 'pisces-rl[torch]'"


def test_environments_do_without_torch():
    assert not [path for path in (SOURCE / "envs").rglob("*.py") if "torch" in path.read_text()]

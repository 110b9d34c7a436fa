"""The direction of imports: every layer imports only layers to its left."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "pisces"
LAYERS = [
    "errors",
    "validation",
    "envs",
    "trajectories",
    "metrics",
    "losses",
    "augment",
    "agents",
    "integrations",
    "experiments",
    "reports",
    "cli",
]


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_layers(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            names = [node.module or ""] + [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("pisces.")}
    return found & set(LAYERS)


MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if layer_of(path) in LAYERS]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_left(path):
    own = LAYERS.index(layer_of(path))
    right = {name for name in imported_layers(path) if LAYERS.index(name) > own}
    assert not right, f"{path.name} imports {right}, which stand to its right"


def test_every_module_has_a_layer():
    known = {*LAYERS, "__init__", "__main__"}
    assert {layer_of(path) for path in SOURCE.rglob("*.py")} <= known


@pytest.mark.parametrize("statement", ["import pisces", "import pisces.cli", "import pisces.envs"])
def test_imports_that_must_stay_light(statement):
    script = f"import sys; {statement}; print([m for m in ('torch', 'mujoco', 'numba') if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"


def test_environments_do_without_torch():
    assert not [path for path in (SOURCE / "envs").rglob("*.py") if "torch" in path.read_text()]

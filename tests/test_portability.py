"""Metrics, losses and training do without the modules and functions that only POSIX has."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "pisces"
POSIX_MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
POSIX_NAMES = {
    *("fork", "forkpty", "getuid", "geteuid", "getgid", "killpg", "mkfifo", "nice", "pread", "pwrite", "setsid"),
    *("sched_getaffinity", "sched_setaffinity", "statvfs", "sysconf", "uname", "O_NOFOLLOW", "O_NONBLOCK"),
    *("SIGKILL", "SIGHUP", "SIGPIPE", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGCHLD", "pthread_sigmask", "setitimer"),
}
# Third-party packages are imported first: on Linux they use what is taken away, on Windows they do not.
PROGRAM = f"""
import importlib.abc, os, signal, sys
import filelock, gymnasium, matplotlib.pyplot, numba, rich.live, safetensors.torch, scipy.stats, torch, tyro
filelock.FileLock = filelock.SoftFileLock  # the one for Linux needs O_NONBLOCK
class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in {sorted(POSIX_MODULES)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
for name in {sorted(POSIX_MODULES)!r}:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Blocked())
for name in {sorted(POSIX_NAMES)!r}:
    for module in (os, signal):
        if hasattr(module, name):
            delattr(module, name)
import numpy as np
import pisces.augment, pisces.envs, pisces.losses, pisces.metrics, pisces.trajectories
from pisces.pairs import TrajectoryPairs
from pisces.trajectories import Trajectory
from pisces.metrics import sequence_metric
assert sequence_metric([[1.0]], 0.5).tolist() == [[2.0]]
episodes = [Trajectory(np.zeros((3, 2), np.float32), actions=[0, 1, k]) for k in range(2)]
kept, mapped = TrajectoryPairs(episodes), TrajectoryPairs(episodes, memory_limit=0)
for _ in range(3):
    assert torch.equal(kept.sample().metric, mapped.sample().metric)
from pisces.cli import main
sys.exit(main(["train", "lqr", "--preset", "smoke", "--out", sys.argv[1]]))
"""


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_of_posix_is_imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not {name.split(".")[0] for name in names} & POSIX_MODULES, f"{path.name}:{node.lineno}"


def test_training_without_posix(tmp_path):
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.rglob("result.json"))) == 1

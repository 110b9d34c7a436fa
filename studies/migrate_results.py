"""Migrates results of schema 1 to schema 2: ``python studies/migrate_results.py results [TARGET]``.

Schema 1 told experiments apart by their keys and named overrides in a string ("study"). Values stay as they are; some
experiments, methods, settings and loss columns are renamed, and the hashes that name run folders change. Run folders
move to TARGET, which is the same folder by default. Results of schema 2 are left alone, so the script can be run again
when older runs arrive.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pisces.experiments.registry import experiment
from pisces.files import write_atomically
from pisces.runs.store import RESULT, SCHEMA, RunFolder

RETIRED = ("distracting", "grid")
"""Experiments whose environments were changed or removed since: earlier results are results of something else."""
METHODS = {
    "pisces": "randconv+shift",
    "pisces-plain": "pse-tuned",
    "pisces-plain-5": "pse-tuned-5",
    "randconv+bisimulation": "randconv+pi-bisimulation",
    "randconv+bisimulation-cme": "randconv+pi-bisimulation-cme",
}
SETTINGS = {
    "coin": "passthrough_per",
    "pass_probability": "passthrough_probability",
    "capacity": "buffer_size",
    "seed_steps": "learning_starts",
    "target_rate": "tau",
    "initial_temperature": "initial_alpha",
}
COLUMNS = {"regularisation_loss": "regularization_loss"}


def migrated_config(name: str, old: Mapping[str, Any]) -> Any:
    """Returns the config of schema 2 for one of schema 1."""
    values = {key: value for key, value in old.items() if key not in ("study", "seeds")}
    values["method"] = METHODS.get(values["method"], values["method"])
    if "settings" in values:
        values["settings"] = {SETTINGS.get(key, key): value for key, value in values["settings"].items()}
        if values["settings"].get("metric") == "bisimulation":
            values["settings"]["metric"] = "pi-bisimulation"
    else:  # bisimulation transfer, which had no settings
        values["settings"] = {"discount": values.pop("discount")}
    if "seeds" in old:
        seeds = old["seeds"]
        if seeds != list(range(seeds[0], seeds[0] + len(seeds))):
            raise ValueError(f"seeds are not consecutive: {seeds}")
        values |= {"seed": seeds[0], "n_seeds": len(seeds)}
    return experiment(name).config_class.from_dict(values)


def migrated_result(config: Any, old: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the result of schema 2 for one of schema 1."""
    values = {key: value for key, value in old.items() if key != "config"}
    if "curve" in values:
        values["curve"] = [{COLUMNS.get(key, key): value for key, value in row.items()} for row in values["curve"]]
    return {"experiment": config.experiment, "schema": SCHEMA, "config": config.as_dict(), **values}


def migrate(path: Path, target: Path) -> Path | None:
    """Migrates one run folder of schema 1; returns where it is now, None if there was nothing to do.

    Args:
        path: the run folder, ``<root>/<experiment>/<method>/<hash>``.
        target: root of the migrated folders.
    """
    result = json.loads((path / RESULT).read_text())
    if "schema" in result:
        return None
    name = path.parts[-3]
    if name in RETIRED:
        print(f"left alone: {path}, because the environments of {name} were changed or removed since", file=sys.stderr)
        return None
    config = migrated_config(name, result["config"])
    folder = RunFolder.of(target, config).path
    if (folder / RESULT).exists() and folder != path:
        print(f"left alone: {path}, because {folder} has a result", file=sys.stderr)
        return None
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(migrated_result(config, result), sort_keys=True) + "\n"
    for file in path.iterdir():
        if file.name not in (RESULT, "config.json", ".lock") and folder != path:
            shutil.move(file, folder / file.name)
    write_atomically(folder / "config.json", json.dumps(config.as_dict(), indent=1, sort_keys=True) + "\n")
    write_atomically(folder / RESULT, text)
    if folder != path:
        shutil.rmtree(path)
    return folder


def main(source: Path, target: Path) -> None:
    """Migrates all run folders below a folder."""
    count = 0
    for file in sorted(source.glob(f"*/*/*/{RESULT}")):
        count += migrate(file.parent, target) is not None
    for folder in sorted(source.glob("*/*"), reverse=True):
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
    print(f"{count} runs migrated")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else sys.argv[1]))

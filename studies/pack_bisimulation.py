"""Writes the bisimulation metric between jumping tasks, which the report page looks up; run without arguments."""

from pathlib import Path

import numpy as np

from pisces.experiments.jumping.report import page

if __name__ == "__main__":
    folder = Path(page.__file__).parent / "page_assets"
    np.savez_compressed(folder / page.BISIMULATION_FILE, **page.bisimulation_matrices())

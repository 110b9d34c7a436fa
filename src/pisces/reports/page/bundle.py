"""One script from several ES modules, because a page that opens from disk cannot import files."""

from __future__ import annotations

import re
from collections.abc import Sequence

IMPORT = re.compile(r"^import\s+\{([^}]*)\}\s+from\s+\"[^\"]+\";\n", re.MULTILINE)
EXPORT = re.compile(r"^export\s+(?=(?:async\s+)?(?:function|const|let|class)\s)", re.MULTILINE)
NAME = re.compile(r"^(?:export\s+)?(?:async\s+)?(?:function|const|let|class)\s+(\w+)", re.MULTILINE)


def bundle(modules: Sequence[str]) -> str:
    """Concatenates ES modules in the given order, without their import and export keywords.

    Args:
        modules: source texts. A module imports only by name (``import { a, b } from "./x.js";``), from modules before
            it; top-level names are unique over all modules.

    Raises:
        ValueError: a name is imported before it is defined, or defined twice.
    """
    known: set[str] = set()
    for source in modules:
        wanted = {name.strip() for names in IMPORT.findall(source) for name in names.split(",") if name.strip()}
        own = NAME.findall(source)
        missing, twice = wanted - known, known & set(own)
        if missing or twice or len(own) != len(set(own)):
            title = source.partition("\n")[0]
            raise ValueError(f"{title!r}: imports {sorted(missing)} too early, defines {sorted(twice)} again")
        known |= set(own)
    return "\n".join(EXPORT.sub("", IMPORT.sub("", source)) for source in modules)

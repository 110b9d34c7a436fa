"""Names files of the repository instead of linking to them: the built pages may stand anywhere."""

import re

OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./[^)]+\)")


def on_page_markdown(markdown, page, config, files):
    """Replaces links that leave docs/."""
    return OUTSIDE.sub(r"`\1`", markdown)

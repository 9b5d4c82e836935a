"""Which build of Tocsin this is."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

#: Where the commit is not known: in a checkout, whose files may be of any.
UNKNOWN = "unknown"
_SHORT_CHARS = 12


@cache
def commit() -> str:
    """The commit from which the installed package was built, with `-dirty` behind it if files differed; UNKNOWN if it is not
    known. The build writes it into the package (`hatch_build.py`)."""
    try:
        text = resources.files("tocsin").joinpath("build.json").read_text(encoding="utf-8")
    except FileNotFoundError:
        return UNKNOWN
    return str(json.loads(text)["commit"])


def short_commit() -> str:
    """The commit for people; empty if it is not known."""
    known, dash, dirty = commit().partition("-")
    return "" if known == UNKNOWN else known[:_SHORT_CHARS] + dash + dirty

"""Which build of Tocsin this is."""

from __future__ import annotations

import json
import platform
from functools import cache
from pathlib import Path

UNKNOWN = "unknown"
#: Behind the commit that a checkout of Git is at: its files may differ.
_CHECKOUT = "-checkout"
_SHORT_CHARS = 12


@cache
def commit() -> str:
    """The commit from which the installed package was built, with `-dirty` behind it if files differed; in an editable
    install the one of its checkout, with `-checkout` behind it; UNKNOWN if it is not known. The build writes it into the
    package (`hatch_build.py`)."""
    try:
        text = Path(__file__).with_name("build.json").read_text(encoding="utf-8")
    except FileNotFoundError:
        # src/tocsin/build_info.py of the checkout.
        return commit_of_checkout(Path(__file__).parents[2])
    return str(json.loads(text)["commit"])


def commit_of_checkout(root: Path) -> str:
    """The commit at which Git is in this folder, read from its files: running Git takes long at each start."""
    git = root / ".git"
    try:
        if git.is_file():
            # A worktree's file names its folder.
            git = root / git.read_text().removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text().strip()
        shared = git / "commondir"
        repository = git / shared.read_text().strip() if shared.is_file() else git
        found = _resolved(repository, head.removeprefix("ref:").strip()) if head.startswith("ref:") else head
    except OSError:
        return UNKNOWN
    return found + _CHECKOUT if found else UNKNOWN


def _resolved(repository: Path, ref: str) -> str:
    """The commit that a branch names; empty if it names none."""
    loose, packed = repository / ref, repository / "packed-refs"
    if loose.is_file():
        return loose.read_text().strip()
    lines = packed.read_text().splitlines() if packed.is_file() else []
    return next((line.split(" ")[0] for line in lines if line.endswith(f" {ref}")), "")


def short_commit() -> str:
    """The commit for people; empty if it is not known."""
    known, dash, dirty = commit().partition("-")
    return "" if known == UNKNOWN else known[:_SHORT_CHARS] + dash + dirty


def versions() -> dict[str, str]:
    """The versions of Tocsin, of the commit it was built from, of Python and of SQLite, and whether compiled code is used."""
    import apsw

    import tocsin
    from tocsin.native import native

    return {
        "tocsin": tocsin.__version__,
        "commit": commit(),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "native": native().description,
    }


def versions_text() -> str:
    """The versions, one a line."""
    return "\n".join(f"{name:6}  {found}" for name, found in versions().items())

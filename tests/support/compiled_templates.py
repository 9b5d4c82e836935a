"""Keeps the pages' compiled templates in `build/templates`. Each server would compile those that it shows; all of them take a
second."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from jinja2 import Environment, FileSystemBytecodeCache

from tocsin.web.pages import pages


def keep_compiled() -> None:
    """From now on, servers of this process, and of those that are forked from it, read what another one has compiled, unless
    its source has changed since."""
    folder = Path(__file__).parents[2] / "build" / "templates"
    folder.mkdir(parents=True, exist_ok=True)
    kept = partial(Environment, bytecode_cache=FileSystemBytecodeCache(str(folder)))
    pages.Environment = kept  # type: ignore[attr-defined,assignment]

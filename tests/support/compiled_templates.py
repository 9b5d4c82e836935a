"""Keeps the pages' compiled templates in `build/templates`. Each server would compile those that it shows; all of them take a
second. What a template is compiled to depends on its source, on the filters, and on Jinja."""

from __future__ import annotations

import hashlib
from functools import partial
from importlib.metadata import version
from pathlib import Path

from jinja2 import Environment, FileSystemBytecodeCache

from tocsin.web.pages import pages


def keep_compiled() -> None:
    """From now on, servers of this process, and of those that are forked from it, read what another one has compiled."""
    sources = sorted(Path(pages.__file__).parent.rglob("*.py"))
    state = hashlib.sha256(version("jinja2").encode() + b"".join(each.read_bytes() for each in sources)).hexdigest()
    folder = Path(__file__).parents[2] / "build" / "templates" / state[:16]
    folder.mkdir(parents=True, exist_ok=True)
    kept = partial(Environment, bytecode_cache=FileSystemBytecodeCache(str(folder)))
    pages.Environment = kept  # type: ignore[attr-defined,assignment]

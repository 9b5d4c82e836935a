"""The scripts and styles that `make web` builds, under file names that change with their content."""

from __future__ import annotations

import json
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

#: The path prefix of the assets.
PREFIX = "/ui/static/"

_TYPES = {
    "js": b"text/javascript; charset=utf-8",
    "css": b"text/css; charset=utf-8",
    "svg": b"image/svg+xml",
    "map": b"application/json",
}


class Asset(NamedTuple):
    """A file, plain and compressed."""

    content_type: bytes
    plain: bytes
    gzip: bytes | None


class Assets:
    """The built files, in memory. `built` is False before `make web` has run."""

    def __init__(self, folder: Traversable | None = None) -> None:
        folder = folder or files("tocsin.web.pages") / "static"
        self._files: dict[str, Asset] = {}
        self._names: dict[str, str] = {}
        manifest = folder / "manifest.json"
        self.built = manifest.is_file()
        if not self.built:
            return
        self._names = json.loads(manifest.read_text(encoding="utf-8"))
        entries = {entry.name: entry for entry in folder.iterdir() if entry.is_file()}
        for name, entry in entries.items():
            kind = _TYPES.get(name.rsplit(".", 1)[-1])
            if kind is not None:
                packed = entries.get(f"{name}.gz")
                self._files[name] = Asset(kind, entry.read_bytes(), packed.read_bytes() if packed else None)

    def url(self, name: str) -> str:
        """The path of an asset, by its source name such as `main.js`."""
        return PREFIX + self._names[name]

    def find(self, path: str) -> Asset | None:
        """The asset at a path that begins with PREFIX; None if there is none."""
        return self._files.get(path[len(PREFIX) :])

"""The scripts and styles that `make web` builds, under file names that change with their content; and the page that is
shown until they are built."""

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
    "woff2": b"font/woff2",
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


UNBUILT = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Tocsin: the web pages are not built</title>
<h1>Tocsin is running, but its web pages are not built</h1>
<p>The API and the timers work without them; their description is at <a href="/openapi.json">/openapi.json</a>.</p>
<p>To build the pages, install <a href="https://nodejs.org">Node.js</a> 20 or newer with npm, and run in the checkout:</p>
<pre>make web</pre>
<p>Then restart the server. Released packages contain the built pages.</p>
</html>
"""

"""The composition root: the one place that names concrete adapters and ties them together."""

from __future__ import annotations

from tocsin.server.node import Server
from tocsin.server.running import serve
from tocsin.server.stores import open_store

__all__ = ["Server", "open_store", "serve"]

"""The composition root: the only place that names concrete adapters and connects them."""

from __future__ import annotations

from tocsin.server.node import Server
from tocsin.server.running import serve
from tocsin.server.stores import open_store

__all__ = ["Server", "open_store", "serve"]

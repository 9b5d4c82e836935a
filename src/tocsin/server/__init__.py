"""The composition root: the one place that names concrete adapters and ties them together."""

from __future__ import annotations

from tocsin.server.node import Server, open_store, serve

__all__ = ["Server", "open_store", "serve"]

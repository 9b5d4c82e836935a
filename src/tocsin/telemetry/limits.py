"""Limits of what a node measures."""

from __future__ import annotations

#: Namespaces with series of their own: each has two or three in every scrape, and Prometheus keeps all in memory.
NAMESPACES_MAX = 1_000

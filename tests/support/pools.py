"""The connections of stores on database servers."""

from __future__ import annotations

from typing import Any

from tocsin.sql.pool import C, Pool
from tocsin.sql.server_store import ServerStore


def writing_pool(store: ServerStore[Any, C]) -> Pool[Any, C]:
    """The pool of the first writing connection of an open store."""
    assert store._lanes is not None
    return store._lanes.pools[0]

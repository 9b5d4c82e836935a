"""Whether the former run of a node that has its database to itself was interrupted, such as by a crash."""

from __future__ import annotations

from pathlib import Path

import structlog

from tocsin.model.instants import format_instant
from tocsin.ports.store import Store

_log = structlog.get_logger("tocsin.server")


def last_write_us(database: Path) -> int | None:
    """When the SQLite file was written last, in microseconds; None if there is none. A running node writes it at each
    heartbeat. Opening the file may write it, too."""
    written = [path.stat().st_mtime_ns for path in (database, Path(f"{database}-wal")) if path.exists()]
    return max(written) // 1_000 if written else None


async def report_interruption(store: Store, written_us: int | None) -> None:
    """Logs that the former run did not release its claims. Call it before this run claims any. Raises the store's errors."""
    claimed = sum(state.owner is not None for state in await store.shards())
    if claimed:
        _log.warning(
            "former run interrupted",
            claimed_shards=claimed,
            last_write=None if written_us is None else format_instant(written_us),
            effect="nothing acknowledged is lost; callbacks in flight, or whose results were not written yet, are sent again",
        )

"""Checkpoints of the write-ahead log (WAL) alongside the commits instead of within one.

By default, SQLite runs a checkpoint within the commit that fills the WAL: a pause of a tenth of a second or more every few
commits. Here a thread does nearly all of it while commits continue. It can't finish alone, because commits keep appending and
the WAL restarts only when its last page has been copied; so the writer copies the small rest between two commits.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import apsw

#: About how many pages the writer copies itself, which takes a few milliseconds.
_REST_PAGES = 300
#: Rounds of the thread before the writer copies the rest, however large it is.
_ROUNDS_MAX = 6


class Checkpointer:
    """Starts a checkpoint once `pages` were written since the last start. `on_error` is called with failures, in the thread
    where they happen. They lose no data: the WAL keeps the pages that were not copied, and the next start tries again."""

    def __init__(
        self, connection: apsw.Connection, pages: int, on_error: Callable[[Exception], None] | None = None
    ) -> None:
        self._connection = connection
        self._pages = pages
        self._on_error = on_error
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tocsin-sqlite-checkpoint")
        self._written_at_start = 0
        # Each flag is set by one thread and cleared by the other, so they need no lock.
        self._moving = False
        self._rest_waits = False

    def committed(self, writer: apsw.Connection) -> None:
        """Call it in the writing thread after each commit, outside of any transaction."""
        if self._rest_waits:
            self._rest_waits = False
            self._checkpoint(writer)
            self._moving = False
            return
        written = writer.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)[0]
        if not self._moving and written - self._written_at_start >= self._pages:
            self._written_at_start = written
            self._moving = True
            self._thread.submit(self._move)

    def _move(self) -> None:
        # A round copies what the WAL contained when it began. What is new for a round was appended during the last one.
        moved = 0
        for _ in range(_ROUNDS_MAX):
            logged = self._checkpoint(self._connection)
            if logged - moved <= _REST_PAGES:
                break
            moved = logged
        self._rest_waits = True

    def _checkpoint(self, connection: apsw.Connection) -> int:
        """Runs one passive round, which does not block; returns how many pages the WAL contained."""
        try:
            return connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)[0]
        except apsw.BusyError:
            # Another process is checkpointing.
            return 0
        except apsw.Error as error:
            if self._on_error is not None:
                self._on_error(error)
            return 0

    def close(self) -> None:
        """Waits for the round under way, then closes the connection."""
        self._thread.submit(self._connection.close)
        self._thread.shutdown()

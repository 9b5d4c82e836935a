"""Moves the write-ahead log into the database file beside the commits instead of inside one.

SQLite's own way is that the commit which fills the log pays for emptying it: a pause of a tenth of a second or more
every few commits. Here a thread of its own does nearly all of it while commits go on. It can't finish alone, since
commits keep adding to the log and only a log that is moved to its last page starts anew; so the writer moves the small
rest between two commits.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import apsw

#: About the writer's own share: so many pages take a few milliseconds.
_REST_PAGES = 300
#: Rounds of the thread before the writer finishes, however much is left.
_ROUNDS_MAX = 6


class Checkpointer:
    """Starts once `pages` were written since the last start. `on_error` hears of failures, in the thread where they
    happen; they lose nothing, since the log keeps what was not moved, and the next start tries again."""

    def __init__(
        self, connection: apsw.Connection, pages: int, on_error: Callable[[Exception], None] | None = None
    ) -> None:
        self._connection = connection
        self._pages = pages
        self._on_error = on_error
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tocsin-sqlite-checkpoint")
        self._written_at_start = 0
        # Written by one thread and read by the other, never by both: True belongs to the one that clears it.
        self._moving = False
        self._rest_waits = False

    def committed(self, writer: apsw.Connection) -> None:
        """To be called by the writing thread after each commit, outside of any transaction."""
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
        # A round moves what the log held when it began. What one round finds new is what was added during the last.
        moved = 0
        for _ in range(_ROUNDS_MAX):
            logged = self._checkpoint(self._connection)
            if logged - moved <= _REST_PAGES:
                break
            moved = logged
        self._rest_waits = True

    def _checkpoint(self, connection: apsw.Connection) -> int:
        """One passive round, which waits for nobody; how many pages the log held."""
        try:
            return connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)[0]
        except apsw.BusyError:
            # Another process is at it.
            return 0
        except apsw.Error as error:
            if self._on_error is not None:
                self._on_error(error)
            return 0

    def close(self) -> None:
        """Waits for a round under way, and closes the connection."""
        self._thread.submit(self._connection.close)
        self._thread.shutdown()

"""What is found by looking at many rows of which no index has those that are wanted, while an overview is open."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from tocsin.model.errors import Unavailable
from tocsin.tasks import Refreshed

#: The minimum time between two reads of the store, however many overviews are open.
READ_INTERVAL_S = 5.0
#: Reads with which one look goes on.
LOOK_READS_MAX = 10
#: After this time without a look, as nobody had an overview open, what was found is too old, and so is where it ended.
STALE_S = 60.0
#: Rows of which something is kept, of one way through all of them.
KEPT_MAX = 1_000

#: What is kept of a row. It begins with namespace and id.
R = TypeVar("R", bound=tuple[object, ...])


class Looked(Refreshed, Generic[R]):
    """The rows that are wanted. Each look reads a bounded number of rows, where the one before ended; so all of them are
    known after some looks, and one that is no longer wanted is known for as long. If the store does not respond, the previous
    result stays."""

    def __init__(self) -> None:
        super().__init__(READ_INTERVAL_S)
        self._cursor: str | None = None
        self._found: list[R] = []
        self._before: list[R] = []
        #: Whether every row that is wanted is known: all were looked at once, and no more found than are kept.
        self.complete = False
        #: Whether more were found than are kept.
        self.more = False
        self._more_here = False
        self._looked_at_s: float | None = None

    @abstractmethod
    async def look(self, cursor: str | None) -> tuple[Sequence[R], str | None]:
        """What is wanted among the rows behind the cursor, and where to go on; None at the end. Raises Unavailable."""

    @property
    def all(self) -> Sequence[R]:
        """What is known: what has been found on the way through all rows, and on the way before."""
        return list({each[:2]: each for each in [*self._before, *self._found]}.values())

    async def _read(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if self._looked_at_s is not None and now_s - self._looked_at_s > STALE_S:
            self._cursor, self._found, self._before = None, [], []
            self.complete = self.more = self._more_here = False
        self._looked_at_s = now_s
        try:
            found, self._cursor = await self.look(self._cursor)
        except Unavailable:
            return
        self._found += found
        if len(self._found) > KEPT_MAX:
            del self._found[KEPT_MAX:]
            self._more_here = self.more = True
            self.complete = False
        if self._cursor is None:
            self.more, self._more_here = self._more_here, False
            self.complete, self._found, self._before = not self.more, [], self._found

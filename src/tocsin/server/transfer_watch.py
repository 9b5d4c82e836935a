"""What a running server does while its store is transferred: it logs its changes, and stops when the transfer asks for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

import structlog

from tocsin.model.errors import StoreCallFailed
from tocsin.model.instants import format_instant
from tocsin.server.transfer_log import ChangeLog
from tocsin.server.transfer_mark import TRANSFER, read_mark
from tocsin.timers.engine.shard import Shard

#: How often the mark is looked for. A pause begins so much later at most.
_INTERVAL_S = 0.5
#: How often the log has that nothing is removed while changes are logged: whoever has given the transfer up may not know it.
_REMIND_S = 3_600.0

_log = structlog.get_logger("tocsin.server")


class TransferWatch:
    """Looks for the mark of a transfer, and does what it asks for. `shards` are the node's; `pause` is called, once, when the
    server has to stop until the transfer has switched over."""

    def __init__(
        self,
        changes: ChangeLog,
        shards: Callable[[], Iterable[Shard]],
        pause: Callable[[], None],
        timeout_s: float,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._changes, self._shards, self._pause, self._timeout_s = changes, shards, pause, timeout_s
        self._version = 0
        # Whether everything is logged, but not announced yet; whether it has been logged since the last look.
        self._waits = self._logged = False
        self._other, self._began_us = "", 0
        self._monotonic_s, self._reminded_s = monotonic_s, 0.0

    async def run(self) -> None:
        """Looks until it is cancelled."""
        while True:
            try:
                async with asyncio.timeout(self._timeout_s):
                    if await self._look():
                        break
            except (StoreCallFailed, TimeoutError) as error:
                # The store's state is the lease's to judge.
                _log.debug("transfer not looked for", error=str(error))
            await asyncio.sleep(_INTERVAL_S)
        self._pause()

    async def _look(self) -> bool:
        """Whether the server has to stop."""
        changes = self._changes
        self._remind()
        (version,) = await changes.records_versions(TRANSFER)
        if version == self._version and not self._waits:
            return False
        mark = await read_mark(changes)
        self._version, self._waits = version, False
        if mark is None or mark.role != "source":
            changes.end()
            self._logged = False
            for shard in self._shards():
                if shard.window is not None:
                    shard.window.range_delete = changes.capabilities.range_delete
            return False
        if mark.phase != "copying":
            _log.warning("pausing for a transfer", to=mark.other, effect="writes get 503 until it has switched over")
            return True
        self._waits = True
        if not self._logged:
            _log.info("logging changes for a transfer", to=mark.other)
            self._other, self._began_us, self._reminded_s = mark.other, mark.at, self._monotonic_s()
        changes.on = True
        # Each time: a window may have been made a moment before.
        for shard in self._shards():
            if shard.window is not None:
                shard.window.range_delete = False
        if self._logged and await changes.settled():
            await changes.announce(mark.transfer)
            self._waits = False
        self._logged = True
        return False

    def _remind(self) -> None:
        now_s = self._monotonic_s()
        if self._logged and now_s - self._reminded_s >= _REMIND_S:
            self._reminded_s = now_s
            _log.warning(
                "a transfer is under way",
                to=self._other,
                since=format_instant(self._began_us),
                effect="no history, failure or run is removed, and each commit logs a row",
                remedy="go on with it by the same command, or end it with tocsin transfer --cancel",
            )

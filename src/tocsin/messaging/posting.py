"""Reports to senders whether their messages were accepted; shared by the buses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tocsin.ports.bus import Envelope

Done = Callable[[Exception | None], None]


class Completions:
    """Calls senders back: never within `post`, but soon after, many in one step of the event loop."""

    def __init__(self) -> None:
        self._pending: list[tuple[Done, Exception | None]] = []

    def add(self, done: Done, error: Exception | None) -> None:
        """`done` will be called with `error`."""
        if not self._pending:
            asyncio.get_running_loop().call_soon(self._run)
        self._pending.append((done, error))

    def _run(self) -> None:
        pending, self._pending = self._pending, []
        for done, error in pending:
            done(error)


async def publish_all(post: Callable[[Envelope, Done], None], envelopes: Sequence[Envelope]) -> None:
    """Posts the messages in order. Returns when all are accepted; raises the first error once each has been accepted or
    failed."""
    if not envelopes:
        return
    finished = asyncio.get_running_loop().create_future()
    left = len(envelopes)
    first: Exception | None = None

    def done(error: Exception | None) -> None:
        nonlocal left, first
        left -= 1
        first = first or error
        if left == 0 and not finished.done():
            finished.set_result(None)

    for envelope in envelopes:
        post(envelope, done)
    await finished
    if first is not None:
        raise first

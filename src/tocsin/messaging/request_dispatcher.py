"""Dispatches commands that need a reply to their responder; shared by the buses."""

from __future__ import annotations

import asyncio
from collections import deque

from tocsin.messaging.delivery import describe
from tocsin.model.envelope import Envelope
from tocsin.model.errors import Unavailable
from tocsin.ports.bus import BusObserver, BusOverloaded, BusUnavailable, CommandFailed, DeliveryFailed, Responder

_Asked = tuple[Envelope, asyncio.Future[Envelope]]


class RequestDispatcher:
    """Passes the commands of one responder on in batches, in order of arrival, one call of the responder at a time.

    If the responder raises for a batch, each command is passed to it again alone. An error for a single command is
    reported and becomes its reply.
    """

    def __init__(
        self, subscriber: str, responder: Responder, batch_max: int, waiting_max: int, observe: BusObserver
    ) -> None:
        self.subscriber = subscriber
        self._responder = responder
        self._batch_max = batch_max
        self._waiting_max = waiting_max
        self._observe = observe
        self._waiting: deque[_Asked] = deque()
        self._stopping = False
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def offer(self, envelope: Envelope) -> asyncio.Future[Envelope]:
        """Adds a command. Its reply, or BusUnavailable, BusOverloaded or CommandFailed. Cancelling it has no effect on
        the command."""
        reply: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        if self._stopping:
            reply.set_exception(BusUnavailable("this node is stopping"))
        elif len(self._waiting) >= self._waiting_max:
            reply.set_exception(BusOverloaded(f"{self._waiting_max} commands wait already"))
        else:
            self._waiting.append((envelope, reply))
            self._wake.set()
        return reply

    def start(self) -> None:
        """Starts dispatching."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"bus {self.subscriber}")

    async def drain(self) -> None:
        """Stops dispatching and refuses waiting commands. Returns when the responder's current call has returned."""
        self._stop()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Stops dispatching and cancels the responder's current call."""
        self._stop()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _stop(self) -> None:
        self._stopping = True
        self._wake.set()
        while self._waiting:
            _fail(self._waiting.popleft(), BusUnavailable("this node is stopping"))

    async def _run(self) -> None:
        while not self._stopping:
            if self._waiting:
                size = min(len(self._waiting), self._batch_max)
                await self._answer([self._waiting.popleft() for _ in range(size)])
            else:
                self._wake.clear()
                await self._wake.wait()

    async def _answer(self, batch: list[_Asked]) -> None:
        try:
            replies = await self._responder([envelope for envelope, _ in batch])
            if len(replies) != len(batch):
                raise RuntimeError(f"{len(replies)} replies to {len(batch)} commands")
        except asyncio.CancelledError:
            for asked in batch:
                _fail(asked, CommandFailed("the command was interrupted; whether it took effect is unknown"))
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
        except Exception as error:  # noqa: BLE001 - the boundary to responders; their errors are reported
            self._report(batch[0][0], error, len(batch))
            if len(batch) == 1:
                # Details, which may name what concerns operators only, are in the event.
                after_s = error.retry_after_s if isinstance(error, Unavailable) else 1.0
                _fail(batch[0], CommandFailed(f"the command failed; try again ({type(error).__name__})", after_s))
                return
            for single in batch:
                await self._answer([single])
        else:
            for (_, reply), answer in zip(batch, replies, strict=True):
                if not reply.done():
                    reply.set_result(answer)

    def _report(self, envelope: Envelope, error: Exception, size: int) -> None:
        text = describe(error) if size == 1 else f"{describe(error)} (a batch of {size})"
        self._observe(DeliveryFailed(self.subscriber, *envelope.about, 1, text))


def _fail(asked: _Asked, error: Exception) -> None:
    if not asked[1].done():
        asked[1].set_exception(error)

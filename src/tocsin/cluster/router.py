"""Which node a write goes to, and what becomes of it while nobody is known to own its shard: the port Forwarder."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.link import PeerLink
from tocsin.model.errors import Overloaded, RequestExpired, ShardMoved, TocsinError
from tocsin.ports.clock import Clock
from tocsin.ports.forward import LocalWrites, Placement, Settle, Write, Written


class _Waiting:
    __slots__ = ("settle", "write")

    def __init__(self, write: Write, settle: Settle) -> None:
        self.write = write
        self.settle = settle


class Router:
    """Brings a write to the owner of its shard, again and again while it certainly was not done, until its deadline.

    `link` gives the link to a node at an address. Unknown outcomes are never tried again: they are the client's to judge.
    """

    def __init__(
        self,
        placement: Placement,
        local: LocalWrites,
        link: Callable[[bytes, str], PeerLink],
        clock: Clock,
        limits: ClusterLimits,
    ) -> None:
        self._placement = placement
        self._local = local
        self._link = link
        self._clock = clock
        self._limits = limits
        self._by_shard: dict[int, deque[_Waiting]] = {}
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._retry_planned = False
        self._closed = False
        placement.watch(self._refreshed)

    @property
    def waiting(self) -> int:
        """Writes whose shard has no owner that takes them."""
        return self._count

    def forward(self, write: Write, settle: Settle) -> None:
        """See Forwarder."""
        if self._closed:
            raise ShardMoved("the node stops")
        if write.shard_id not in self._by_shard and self._go(write, settle):
            return
        if self._count >= self._limits.waiting_writes_max:
            raise Overloaded(
                f"{self._count} writes wait for owners of their shards already (cluster.waiting_writes_max)"
            )
        self._wait(write, settle)

    def close(self) -> None:
        """Whatever waits is refused: nothing of it was written."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        by_shard, self._by_shard, self._count = self._by_shard, {}, 0
        for waiting in by_shard.values():
            for entry in waiting:
                entry.settle(ShardMoved("the node stops"))

    def _go(self, write: Write, settle: Settle) -> bool:
        """Hands the write to the owner; False when there is nobody to hand it to."""
        owner = self._placement.owner(write.shard_id)
        if owner is None:
            return False
        answered = partial(self._answered, write, settle)
        try:
            if owner.incarnation == self._placement.incarnation:
                self._local.accept(write, None, answered)
            elif owner.address:
                self._link(owner.incarnation, owner.address).send(write, owner.epoch, answered)
            else:
                return False
        except ShardMoved:
            return False
        except TocsinError as error:
            settle(error)
        return True

    def _answered(self, write: Write, settle: Settle, answer: Written | TocsinError | None) -> None:
        if type(answer) is ShardMoved and not self._closed:
            self._wait(write, settle)
        else:
            settle(answer)

    # ------------------------------------------------------------------ waiting for an owner

    def _wait(self, write: Write, settle: Settle) -> None:
        self._by_shard.setdefault(write.shard_id, deque()).append(_Waiting(write, settle))
        self._count += 1
        self._placement.refresh()
        self._keep_trying()

    def _keep_trying(self) -> None:
        if self._by_shard and self._timer is None and not self._closed:
            delay_s = self._limits.retry_interval_us / 1e6
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._retry()
        if self._by_shard:
            self._placement.refresh()
        self._keep_trying()

    def _refreshed(self) -> None:
        if self._by_shard and not self._retry_planned and not self._closed:
            self._retry_planned = True
            asyncio.get_running_loop().call_soon(self._on_look)

    def _on_look(self) -> None:
        self._retry_planned = False
        self._retry()

    def _retry(self) -> None:
        """All that wait, in the order in which they came."""
        by_shard, self._by_shard, self._count = self._by_shard, {}, 0
        now = self._clock.boottime_us()
        for shard_id, waiting in by_shard.items():
            while waiting:
                entry = waiting[0]
                if entry.write.deadline_us <= now:
                    waiting.popleft()
                    entry.settle(RequestExpired(f"nobody took shard {shard_id} within the request's time"))
                elif self._go(entry.write, entry.settle):
                    waiting.popleft()
                else:
                    break
            for entry in waiting:
                self._again(shard_id, entry, now)

    def _again(self, shard_id: int, entry: _Waiting, now: int) -> None:
        if entry.write.deadline_us <= now:
            entry.settle(RequestExpired(f"nobody took shard {shard_id} within the request's time"))
            return
        self._by_shard.setdefault(shard_id, deque()).append(entry)
        self._count += 1

"""Routes each write to the owner of its shard, and keeps it while no owner is known: the port Forwarder."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.link import PeerLink
from tocsin.model.errors import Overloaded, RequestExpired, ShardMoved, TocsinError
from tocsin.ports.clock import Clock
from tocsin.ports.completion import Completion
from tocsin.ports.forward import LocalWrites, Placement, Write, WriteCompletion, Written


class _Waiting(NamedTuple):
    write: Write
    completion: WriteCompletion


class Router:
    """Sends a write to the owner of its shard. It retries while the write was certainly not done, until the write's
    deadline.

    `link` returns the link to a node at an address. A write with an unknown outcome is not retried: that is the
    client's decision.
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
        """Writes whose shard has no owner that accepts them."""
        return self._count

    def forward(self, write: Write, completion: WriteCompletion) -> None:
        """Sends the write to the owner of its shard, or keeps it until there is one."""
        if self._closed:
            completion.refuse(ShardMoved("the node is stopping"))
        elif write.shard_id not in self._by_shard and self._dispatch(write, completion):
            pass
        elif self._count >= self._limits.waiting_writes_max:
            why = f"{self._count} writes already wait for an owner of their shard (cluster.waiting_writes_max)"
            completion.refuse(Overloaded(why))
        else:
            self._wait(write, completion)

    def close(self) -> None:
        """Refuses all waiting writes: none of them was written."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        by_shard, self._by_shard, self._count = self._by_shard, {}, 0
        for waiting in by_shard.values():
            for entry in waiting:
                entry.completion.refuse(ShardMoved("the node is stopping"))

    def _dispatch(self, write: Write, completion: WriteCompletion) -> bool:
        """Passes the write to the owner. Returns False if there is none."""
        owner = self._placement.owner(write.shard_id)
        if owner is None:
            return False
        sent = _Dispatched(self, write, completion)
        try:
            if owner.incarnation == self._placement.incarnation:
                self._local.accept(write, None, sent)
            elif owner.address:
                self._link(owner.incarnation, owner.address).send(write, owner.epoch, sent)
            else:
                return False
        except ShardMoved:
            return False
        except TocsinError as error:
            completion.refuse(error)
        except Exception as error:  # noqa: BLE001 -- the writes that wait behind it go on
            completion.fail(error)
        return True

    # ------------------------------------------------------------------ waiting for an owner

    def moved(self, write: Write, completion: WriteCompletion, error: ShardMoved) -> None:
        """The write was certainly not done. It waits until its shard has an owner that takes it."""
        if self._closed:
            completion.refuse(error)
        else:
            self._wait(write, completion)

    def _wait(self, write: Write, completion: WriteCompletion) -> None:
        self._by_shard.setdefault(write.shard_id, deque()).append(_Waiting(write, completion))
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
            asyncio.get_running_loop().call_soon(self._retry_now)

    def _retry_now(self) -> None:
        self._retry_planned = False
        self._retry()

    def _retry(self) -> None:
        """Retries all waiting writes in order of arrival."""
        by_shard, self._by_shard, self._count = self._by_shard, {}, 0
        now = self._clock.boottime_us()
        for shard_id, waiting in by_shard.items():
            blocked = False
            for entry in waiting:
                if entry.write.deadline_us <= now:
                    why = f"no node accepted the write for shard {shard_id} before the request's deadline"
                    entry.completion.refuse(RequestExpired(why))
                elif blocked or not self._dispatch(entry.write, entry.completion):
                    # Later writes wait, too: they keep their order.
                    blocked = True
                    self._by_shard.setdefault(shard_id, deque()).append(entry)
                    self._count += 1


class _Dispatched(Completion[Written | None]):
    """A write at an owner. If it has moved on, the write waits for the next one."""

    __slots__ = ("_completion", "_router", "_write")

    def __init__(self, router: Router, write: Write, completion: WriteCompletion) -> None:
        super().__init__()
        self._router, self._write, self._completion = router, write, completion

    def _resolved(self, written: Written | None) -> None:
        self._completion.resolve(written)

    def _refused(self, error: TocsinError) -> None:
        if type(error) is ShardMoved:
            self._router.moved(self._write, self._completion, error)
        else:
            self._completion.refuse(error)

    def _failed(self, error: Exception) -> None:
        self._completion.fail(error)

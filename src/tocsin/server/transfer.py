"""The transfer of everything in one store to another one, of any kind and with any number of shards, while no server runs.

Both stores are fenced by claims of all of their shards. Shards of the source that are in the target are noted there, so that
a transfer that was interrupted goes on. `transfer_mark` has what keeps servers away.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from typing import NamedTuple

import msgspec

from tocsin.administration import namespaces
from tocsin.model.namespace import DamagedNamespace
from tocsin.ports.store import Capabilities, Member, RunRow, Store
from tocsin.server.seals import carry_keys
from tocsin.server.stores import check_payload_limit, open_store
from tocsin.server.transfer_calls import Calls, counted_calls, opened_calls, refuse_calls
from tocsin.server.transfer_calls import refuse_data as refuse_data_of_calls
from tocsin.server.transfer_log import forget_log
from tocsin.server.transfer_mark import (
    TransferMark,
    TransferRefused,
    put_mark,
    read_mark,
    remove_mark,
)
from tocsin.server.transfer_records import RECORD_KINDS, copy_records, differing_records
from tocsin.server.transfer_rows import Contents, Placement, RowWriter, measured, shard_rows, with_ordered_flows
from tocsin.settings import Settings
from tocsin.timers.jobs import every_job

#: How often members are read while it is found out whether they live.
_POLL_S = 0.5
#: Ends whose retention ends so soon after a comparison began may have been removed from one side only. Of large stores it
#: takes longer: then it is made again with another margin.
EXPIRY_MARGIN_US = 600_000_000

#: Shows the progress of a step that has so many rows (None: unknown); what it yields takes the number of rows done.
Progress = Callable[[str, int | None], AbstractContextManager[Callable[[int], None]]]


class Side(NamedTuple):
    """A store that is open: its number of shards, where it is, for people and without credentials, and how long its nodes
    may be silent before they are presumed dead."""

    store: Store
    shards: int
    place: str
    member_timeout_s: float


class Transfer:
    """One run of a transfer, the first or a later one. Raises TransferRefused, StoreError."""

    def __init__(self, source: Side, target: Side, progress: Progress, calls: Calls | None = None) -> None:
        self._source, self._target, self._progress, self._calls = source, target, progress, calls
        self._dead: dict[str, Mapping[bytes, int]] = {}

    async def run(self) -> Contents:
        """Moves everything, and returns what was moved."""
        source, target = self._source, self._target
        began_us = time.time_ns() // 1_000
        if await is_complete(source, target):
            return await self._contents(source, began_us)
        mark = await self._begun()
        for side in (source, target):
            self._dead[side.place] = await refuse_living(side)
        if mark is not None and await read_mark(source.store) is not None:
            # Only the last steps are missing.
            await self._confirm_source(mark)
            await open_target(target, mark)
            return await self._contents(source, began_us)
        await refuse_unmovable(source.store)
        contents = await self._contents(source, began_us)
        refuse_large(contents, target.store.capabilities)
        if mark is None:
            fresh = TransferMark("target", uuid.uuid4().hex, source.place, began_us)
            mark = await put_mark(target.store, fresh)
        mark = await self._fence(mark)
        await self._copy(mark, contents, began_us)
        await copy_records(source.store, source.shards, target.store, target.shards)
        if self._calls is not None:
            with self._progress("copying calls", None) as advance:
                await self._calls.copy(advance)
        await self._verify()
        await self._close_source(mark)
        await open_target(target, mark)
        return contents

    async def _begun(self) -> TransferMark | None:
        """The target's mark if this transfer was begun before. Raises TransferRefused if one store can't become the other."""
        source, target = self._source, self._target
        of_source, mark = await read_mark(source.store), await read_mark(target.store)
        if of_source is not None and (mark is None or of_source.transfer != mark.transfer):
            raise foreign_source(source.place, of_source)
        if mark is None:
            await refuse_data(target)
            if self._calls is not None:
                await refuse_data_of_calls(self._calls.target, target.place)
        elif mark.role == "source" or mark.other != source.place:
            raise TransferRefused(
                f"--to: {target.place} is part of the transfer of another store, {mark.other}; name an empty store"
            )
        elif mark.online:
            raise TransferRefused("this transfer was begun with --online; go on with it, or cancel it with --cancel")
        return mark

    # ------------------------------------------------------------------ fences

    async def _fence(self, mark: TransferMark) -> TransferMark:
        """Claims every shard of both sides: those of the source once and for all, and then those of the target, each in an
        epoch above all of the source."""
        source, target = self._source, self._target
        if mark.claimed:
            await self._check_source(mark)
        else:
            await claim_all(source, mark.owner, self._dead[source.place])
            mark = await put_mark(target.store, msgspec.structs.replace(mark, claimed=True))
        highest = max(state.epoch for state in await source.store.shards())
        await claim_all(target, mark.owner, self._dead[target.place], above=highest)
        return mark

    async def _check_source(self, mark: TransferMark) -> None:
        """Raises TransferRefused if anybody has claimed a shard of the source since the transfer did."""
        states = {state.shard_id: state for state in await self._source.store.shards()}
        owners = {states[each].owner if each in states else None for each in range(self._source.shards)}
        if owners != {mark.owner}:
            raise TransferRefused(
                f"a server has used {self._source.place} since the transfer began, so that {self._target.place} is outdated; "
                "stop it, and start over with an empty store"
            )

    async def _close_source(self, mark: TransferMark) -> None:
        """Marks the source. A server writes its member row before it reads the mark, so that either it sees the mark, or it
        is seen here."""
        at_us = time.time_ns() // 1_000
        await put_mark(self._source.store, TransferMark("source", mark.transfer, self._target.place, at_us))
        await self._confirm_source(mark)

    async def _confirm_source(self, mark: TransferMark) -> None:
        """Removes the mark of the source, and raises TransferRefused, if a server has used the source meanwhile."""
        source = self._source
        try:
            await self._check_source(mark)
            for member in await source.store.members():
                if self._dead[source.place].get(member.incarnation) != member.counter:
                    raise living(member, source.place)
        except TransferRefused:
            await remove_mark(source.store)
            raise

    # ------------------------------------------------------------------ contents

    async def _contents(self, side: Side, after_us: int) -> Contents:
        with self._progress("counting", None) as advance:
            contents = await measured(side.store, side.shards, after_us, advance)
            contents.calls = None if self._calls is None else await self._calls.counted(advance)
        return contents

    async def _copy(self, mark: TransferMark, contents: Contents, began_us: int) -> None:
        """Copies the shards that are not in the target yet. What is written again is the same."""
        source, target = self._source, self._target
        ordered = await with_ordered_flows(source.store)
        placement = Placement(await namespaces(source.store), source.shards, target.shards, ordered)
        epochs = {state.shard_id: state.epoch for state in await target.store.shards()}
        writer = RowWriter(target.store, epochs, mark.owner, placement)
        with self._progress("copying", None if mark.copied else contents.rows) as advance:
            for shard_id in range(source.shards):
                if shard_id in mark.copied:
                    continue
                async for page in shard_rows(source.store, shard_id, began_us):
                    await writer.write(source.store, shard_id, page)
                    advance(len(page))
                await writer.flush()
                mark = await put_mark(target.store, msgspec.structs.replace(mark, copied=(*mark.copied, shard_id)))

    async def _verify(self) -> None:
        """Compares counts and digests of all rows, and all records. Raises TransferRefused for a difference."""
        source, target = self._source, self._target

        async def compare(after_us: int) -> tuple[Contents, str]:
            with self._progress("verifying", None) as advance:
                sides = (source, target)
                expected, found = [await measured(side.store, side.shards, after_us, advance) for side in sides]
            return expected, "" if expected == found else f"{found} instead of {expected}"

        _, difference = await compared(compare)
        if difference:
            raise not_a_copy(source, target, difference)
        if self._calls is not None:
            with self._progress("verifying calls", None) as advance:
                await self._calls.verify(advance)
        await refuse_differences(source, target)


async def compared(compare: Callable[[int], Awaitable[tuple[Contents, str]]]) -> tuple[Contents, str]:
    """What the source has, and how the target differs. `compare` finds it, without ends whose retention ends at the instant
    that it is given, or before. If that takes longer than until then, some databases have removed what one side was read
    with: then a difference is looked for again."""
    margin_us = EXPIRY_MARGIN_US
    while True:
        began_us = time.time_ns() // 1_000
        contents, difference = await compare(began_us + margin_us)
        took_us = time.time_ns() // 1_000 - began_us
        if not difference or took_us < margin_us:
            return contents, difference
        margin_us = 2 * took_us


def not_a_copy(source: Side, target: Side, how: str) -> TransferRefused:
    """The error for a copy that is not one."""
    return TransferRefused(
        f"{target.place} is not what {source.place} is: {how}; nothing was switched over; start over with an empty store, "
        "and report it if it happens again"
    )


async def refuse_differences(source: Side, target: Side) -> None:
    """Raises TransferRefused unless the records are the same."""
    if found := await differing_records(source.store, source.shards, target.store, target.shards):
        raise not_a_copy(source, target, f"records that differ: {', '.join(found)}")


async def open_target(target: Side, mark: TransferMark) -> None:
    """Lets servers use the target."""
    for state in await target.store.shards():
        if state.owner == mark.owner:
            await target.store.release(state.shard_id, epoch=state.epoch, owner=mark.owner)
    await remove_mark(target.store)


async def is_complete(source: Side, target: Side) -> bool:
    """Whether everything is in the target already, where servers may have changed it since: a transfer that was killed when
    only its report was missing succeeds when it is run again."""
    mark = await read_mark(source.store)
    if mark is None or mark.role != "source" or mark.phase != "moved" or mark.other != target.place:
        return False
    # An empty store that was created later at the same place has nothing of the source.
    return await read_mark(target.store) is None and bool(await target.store.shards())


def foreign_source(place: str, mark: TransferMark) -> TransferRefused:
    """The error for a source that is part of another transfer."""
    if mark.role == "target":
        return TransferRefused(f"--from: {place} is the target of an unfinished transfer from {mark.other}; finish it")
    if mark.phase != "moved":
        return TransferRefused(
            f"--from: a transfer of {place} to {mark.other} is under way; go on with it, or cancel it with --cancel"
        )
    return TransferRefused(f"--from: the timers of {place} were transferred to {mark.other}; nothing is left to move")


def living(member: Member, place: str) -> TransferRefused:
    """The error for a server that runs."""
    return TransferRefused(
        f"the server {member.node} ({member.address or 'no address'}) uses {place}; stop the servers of both stores first"
    )


async def refuse_living(side: Side) -> Mapping[bytes, int]:
    """Raises TransferRefused if a server uses the store; returns the counters of members that were not removed when their
    processes ended. An exclusive store has its lock instead."""
    if side.store.capabilities.exclusive:
        return {member.incarnation: member.counter for member in await side.store.members()}
    seen = {member.incarnation: member.counter for member in await side.store.members()}
    deadline = time.monotonic() + (side.member_timeout_s if seen else 0)
    while time.monotonic() < deadline:
        await asyncio.sleep(_POLL_S)
        for member in await side.store.members():
            if seen.get(member.incarnation) != member.counter:
                raise living(member, side.place)
    return seen


async def refuse_data(target: Side) -> None:
    """Raises TransferRefused unless the store has never been used."""
    found = [kind for kind in RECORD_KINDS if await target.store.records(kind, limit=1)]
    if await target.store.shards() or found:
        raise TransferRefused(
            f"--to: {target.place} has been used already; name an empty database, schema, keyspace, table or file"
        )


def refuse_large(contents: Contents, target: Capabilities) -> None:
    """Raises TransferRefused for a record that the target can't hold."""
    largest, most = contents.largest, target.row_bytes_max
    if largest is not None and most is not None and len(largest.record) > most:
        name = largest.uuid.hex() if isinstance(largest, RunRow) else f"{largest.namespace}/{largest.timer_id}"
        raise TransferRefused(
            f"--to: the record of {name} has {len(largest.record)} bytes, and the target can hold {most}; change or "
            "delete it in the source"
        )


async def refuse_unmovable(source: Store, *, online: bool = False) -> None:
    """Raises TransferRefused while a job is not finished, and if the shards of a namespace's timers are not known. `online`:
    the source's servers run."""
    running = [job.id for job in await every_job(source, lambda event: None) if job.live]
    if running:
        wait = "wait for it or cancel it (`tocsin jobs cancel`), and"
        remedy = f"{wait} run the same command again" if online else f"start the server, {wait} stop the server again"
        raise TransferRefused(f"the job {running[0]} has not ended; {remedy}")
    damaged = [each.name for each in await namespaces(source) if isinstance(each, DamagedNamespace)]
    if damaged:
        raise TransferRefused(
            f"the record of the namespace {damaged[0]} can't be read, so that the shards of its timers are not known; "
            "restore it from a backup first"
        )


async def claim_all(side: Side, owner: bytes, dead: Mapping[bytes, int], above: int = 0) -> None:
    """Claims every shard, as often as it takes until its epoch is above this one."""
    states = {state.shard_id: state for state in await side.store.shards()}
    for shard_id in range(side.shards):
        state = states.get(shard_id)
        epoch = 0 if state is None else state.epoch
        former = None if state is None or state.owner is None or state.owner == owner else state.owner
        presumed_dead = (former, dead[former]) if former is not None and former in dead else None
        while True:
            claimed = await side.store.claim(shard_id, expected_epoch=epoch, owner=owner, presumed_dead=presumed_dead)
            if claimed is None:
                raise TransferRefused(f"a server has claimed shard {shard_id} of {side.place}; stop all servers first")
            epoch, presumed_dead = claimed, None
            if epoch > above:
                break


async def transfer_online(source: Settings, target: Settings, progress: Progress) -> tuple[Contents, float]:
    """Moves everything while servers use the source. Returns what was moved, and for how many seconds none of them ran.
    Raises ConfigError, TransferRefused, StoreError."""
    from tocsin.server.transfer_online import OnlineTransfer

    async with _opened(source, create=False, node=False) as of_source, _opened(target, create=True) as of_target:
        await carry_keys(source, target, of_source.store)
        moving = OnlineTransfer(
            of_source, of_target, progress, lambda: opened_calls(source, target), lambda: refuse_calls(source, target)
        )
        return await moving.run(), moving.paused_s


async def cancel(source: Settings) -> None:
    """Ends a transfer under traffic that has not switched over: the servers go on with the source. Raises ConfigError,
    TransferRefused, StoreError."""
    async with _opened(source, create=False, node=False) as side:
        mark = await read_mark(side.store)
        if mark is None or mark.role != "source" or mark.phase == "moved":
            raise TransferRefused(f"--from: no transfer of {side.place} is under way")
        await remove_mark(side.store)
        await forget_log(side.store)


async def transfer(source: Settings, target: Settings, progress: Progress) -> Contents:
    """Moves everything from the source's store to the target's, and returns what was moved. Raises ConfigError,
    TransferRefused, StoreError."""
    async with (
        _opened(source, create=False) as of_source,
        opened_calls(source, target) as calls,
        _opened(target, create=True) as of_target,
    ):
        await carry_keys(source, target, of_source.store)
        return await Transfer(of_source, of_target, progress, calls).run()


async def plan(source: Settings, target: Settings, progress: Progress) -> Contents:
    """What a transfer would move, read while a server may run; without service calls while their agent does. Raises
    ConfigError, TransferRefused for what a transfer would refuse, StoreError."""
    async with _opened(source, create=False, node=False) as side:
        if (mark := await read_mark(side.store)) is not None and mark.role == "source" and mark.phase == "moved":
            raise foreign_source(side.place, mark)
        await refuse_unmovable(side.store)
        await carry_keys(source, target, side.store, copy=False)
        with progress("counting", None) as advance:
            contents = await measured(side.store, side.shards, time.time_ns() // 1_000, advance)
            contents.calls = await counted_calls(source, advance)
        refuse_large(contents, open_store(target, node=False, memory=False).capabilities)
        return contents


@asynccontextmanager
async def _opened(settings: Settings, *, create: bool, node: bool = True) -> AsyncIterator[Side]:
    """The settings' store, which nobody else can open meanwhile if it is a file and `node`."""
    store = open_store(settings, node=node, memory=False, create=create)
    check_payload_limit(settings, store.capabilities)
    try:
        shards = await store.open(settings.shards if create else None)
        yield Side(store, shards, _place(settings), settings.engine.member_timeout_us / 1e6)
    finally:
        await store.close()


def _place(settings: Settings) -> str:
    """Where the store is, the same however it is named."""
    url = settings.store_url_redacted()
    if url.startswith("sqlite:"):
        return f"sqlite:///{settings.sqlite_path().resolve()}"
    return f"{url} schema {settings.postgresql.schema}" if url.startswith("postgresql:") else url

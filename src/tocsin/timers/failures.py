"""What failed and nobody has dealt with: grouped by cause, listed, dismissed. Any node reads it from the store."""

from __future__ import annotations

import asyncio
import struct
from bisect import bisect_left
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tocsin.model.errors import FieldError, InvalidInput, RecordUndecodable
from tocsin.model.failure import split_failure
from tocsin.model.failure_groups import (
    ANY_GROUP,
    FAILURES_READ_MAX,
    CountedFailures,
    FailedKind,
    FailureGroups,
    Grouping,
    GroupKey,
    Sample,
)
from tocsin.model.ids import schedule_uuid, timer_uuid
from tocsin.model.opaque import from_opaque, to_opaque
from tocsin.model.run import Run, decode_run
from tocsin.model.timer import LoggedAttempt, decode_record
from tocsin.ports.store import (
    GENERATION_BYTES,
    NOTIFICATIONS_SUFFIX,
    SCHEDULES_SUFFIX,
    UUID_BYTES,
    FailurePlace,
    FailureRow,
    HistoryRow,
    RunRow,
    Store,
)
from tocsin.tasks import Turns, in_parallel
from tocsin.timers.listing import Scope, read_cursor, write_cursor
from tocsin.timers.namespaces import Namespaces

#: Failures read from one shard at a time, at least and at most: those of all shards wait in memory to be put in order.
_PAGE_MIN, _PAGE_MAX = 20, 1_000
#: Shards, or samples, that one call reads at once; and calls that a process serves at once.
_READS_MAX, _CALLS_MAX = 8, 2
#: A failure, and the shard that has it.
Found = tuple[int, FailureRow]
_HANDLE = struct.Struct(f">cq{GENERATION_BYTES}s")


@dataclass(frozen=True, slots=True)
class FailureFilter:
    """Which failures: of the scope, those since an instant (microseconds), and those of one group."""

    scope: Scope
    since: int | None = None
    group: GroupKey = ANY_GROUP

    def matches(self, row: FailureRow) -> bool:
        """Whether the failure belongs to the group."""
        # The key of each row takes most of the time of a page.
        return self.group == ANY_GROUP or self.group.includes(key_of(row))


#: What is stored under a namespace's name and a slash.
_KINDS = {SCHEDULES_SUFFIX[1:]: FailedKind.OCCURRENCE, NOTIFICATIONS_SUFFIX[1:]: FailedKind.NOTIFICATION}


def kind_of(row: FailureRow) -> FailedKind:
    """What failed."""
    return _KINDS.get(row.namespace.partition("/")[2], FailedKind.TIMER)


def namespace_of(row: FailureRow) -> str:
    """The namespace, also of an occurrence and of a notification."""
    return row.namespace.partition("/")[0]


def is_of_schedule(row: FailureRow) -> bool:
    """Whether an occurrence failed, or a notification about a schedule, whose uuid begins like the schedule's."""
    return row.uuid[:4] == schedule_uuid(namespace_of(row), row.timer_id)[:4]


def key_of(row: FailureRow) -> GroupKey:
    """The group of a failure, grouped by everything."""
    return GroupKey(namespace_of(row), *split_failure(row.failure), kind_of(row))


class Failures:
    """Lists, samples and dismisses failures. Raises NamespaceNotFound for a scope of one that is unknown, InvalidInput for
    bad cursors and ids, and Unavailable."""

    def __init__(self, store: Store, namespaces: Namespaces, turns: Turns, total_shards: int) -> None:
        self._store, self._namespaces, self._turns, self._total_shards = store, namespaces, turns, total_shards
        self._calls = asyncio.Semaphore(_CALLS_MAX)

    async def groups(self, wanted: FailureFilter, by: Sequence[str], limit: int) -> FailureGroups[Found]:
        """The failures of the filter in groups by these fields, the first groups with samples."""
        grouping: Grouping[Found] = Grouping(by, lambda found: key_of(found[1]))

        def add(each: Found) -> None:
            row = each[1]
            grouping.add(each, (row.namespace, row.failure), row.failed_at)

        async with self._calls:
            walk = await self._walk(wanted, None)
            async for rows in walk:
                await self._turns.each(map(add, rows))
            found = grouping.first(limit, walk.at_least)
            await in_parallel(self._sample, found.groups, asyncio.Semaphore(_READS_MAX))
        return found

    async def count(self, wanted: FailureFilter, number_max: int) -> tuple[int, bool]:
        """How many failures one short look finds, and whether there may be more."""
        async with self._calls:
            walk = await self._walk(wanted, None, number_max)
            return sum([len(rows) async for rows in walk]), walk.at_least

    async def members(
        self, wanted: FailureFilter, limit: int, cursor: str | None
    ) -> tuple[list[FailureRow], str | None]:
        """A page of failures, newest first, and the cursor of the next page if one may follow."""
        page: list[FailureRow] = []
        async with self._calls:
            walk = await self._walk(wanted, read_cursor(cursor), first=limit)
            async for rows in walk:
                page += [row for _, row in rows]
                if len(page) > limit:
                    return page[:limit], write_cursor(page[limit - 1].place)
        return page, write_cursor(walk.place) if walk.at_least and walk.place is not None else None

    async def sample(self, row: FailureRow) -> Sample:
        """The request and the last attempt of a failure."""
        shard_id = self._namespaces.shard_of(namespace_of(row), row.uuid)
        return await self._sample_of(shard_id, row)

    async def is_listed(self, row: FailureRow) -> bool:
        """Whether the failure is still there: it was neither dismissed nor dealt with since it was read."""
        shard_id = self._namespaces.shard_of(namespace_of(row), row.uuid)
        found = await self._namespaces.read(self._store.failures(shard_id, _before(row.place), 1))
        return bool(found) and found[0].place == row.place

    async def dismiss(self, wanted: FailureFilter) -> tuple[int, bool]:
        """Removes the failures of the filter from the list; how many, and whether there may be more."""
        shards: dict[int, list[FailurePlace]] = {}
        async with self._calls:
            walk = await self._walk(wanted, None)
            async for rows in walk:
                for shard_id, row in rows:
                    shards.setdefault(shard_id, []).append(row.place)
            await self._remove(shards)
        return sum(map(len, shards.values())), walk.at_least

    async def dismiss_ids(self, namespace: str, ids: Iterable[str]) -> int:
        """Removes these failures of a namespace from the list; how many, including those that were not listed any more."""
        await self._namespaces.ensure_known(namespace)
        shards: dict[int, list[FailurePlace]] = {}
        unproven: list[tuple[int, FailurePlace]] = []
        handles = list(ids)
        for position, failure_id in enumerate(handles):
            place, proven = _place_of(namespace, failure_id, position)
            shard_id = self._namespaces.shard_of(namespace, place[1])
            if proven:
                shards.setdefault(shard_id, []).append(place)
            else:
                unproven.append((shard_id, place))

        async def prove(named: tuple[int, FailurePlace]) -> None:
            shard_id, place = named
            call = self._store.failures(shard_id, _before(place), 1)
            rows = await self._namespaces.read(call)
            if rows and rows[0].place == place and namespace_of(rows[0]) == namespace:
                shards.setdefault(shard_id, []).append(place)

        await in_parallel(prove, unproven, asyncio.Semaphore(_READS_MAX))
        await self._remove(shards)
        return len(handles)

    async def _remove(self, shards: Mapping[int, Sequence[FailurePlace]]) -> None:
        for shard_id, places in shards.items():
            for begin in range(0, len(places), _PAGE_MAX):
                some = places[begin : begin + _PAGE_MAX]
                await self._namespaces.read(self._store.remove_failures(shard_id, some))

    async def _walk(
        self,
        wanted: FailureFilter,
        after: FailurePlace | None,
        read_max: int = FAILURES_READ_MAX,
        *,
        first: int | None = None,
    ) -> _Walk:
        if isinstance(wanted.scope, str):
            await self._namespaces.ensure_known(wanted.scope)
        names: Sequence[str] | None = (wanted.scope,) if isinstance(wanted.scope, str) else None
        if isinstance(wanted.scope, tuple):
            names = await self._namespaces.known_among(wanted.scope)
        shards = range(self._total_shards) if names is None else self._namespaces.shards_of(names)

        async def read(shard_id: int, place: FailurePlace | None, limit: int) -> list[FailureRow]:
            call = self._store.failures(shard_id, place, limit, descending=True)
            return await self._namespaces.read(call)

        def is_wanted(row: FailureRow) -> bool:
            return (names is None or namespace_of(row) in names) and wanted.matches(row)

        return _Walk(read, shards, after, wanted.since, is_wanted, read_max, first)

    async def _sample(self, group: CountedFailures[Found]) -> None:
        shard_id, row = group.newest[0]
        group.sample = await self._sample_of(shard_id, row)

    async def run_of(self, row: FailureRow) -> Run | None:
        """The run that failed, of an occurrence; None if it is not kept, or can't be read."""
        end = await self._end_of(self._namespaces.shard_of(namespace_of(row), row.uuid), row)
        try:
            return None if end is None or isinstance(end, HistoryRow) else decode_run(end.record)
        except RecordUndecodable:
            return None

    async def _end_of(self, shard_id: int, row: FailureRow) -> HistoryRow | RunRow | None:
        behind = (int.from_bytes(row.generation, "big") + 1).to_bytes(GENERATION_BYTES, "big")
        ends = await self._namespaces.read(self._store.runs(shard_id, row.uuid, behind, 1))
        return ends[0] if ends and ends[0].generation == row.generation else None

    async def _sample_of(self, shard_id: int, row: FailureRow) -> Sample:
        end = await self._end_of(shard_id, row)
        try:
            if isinstance(end, HistoryRow):
                timer = decode_record(end.record)
                return Sample(timer.method, timer.url, _last(timer.attempt_log), timer)
            attempt = None if end is None else _last(decode_run(end.record).attempts)
            if kind_of(row) is not FailedKind.OCCURRENCE:
                return Sample(None, None, attempt)
            found = (await self._namespaces.read(self._store.fetch(shard_id, [row.uuid]))).get(row.uuid)
            stored = found and (found.live or found.finished)
            schedule = decode_record(stored.record) if stored else None
        except RecordUndecodable:
            return Sample(None, None, None)
        return (
            Sample(None, None, attempt)
            if schedule is None
            else Sample(schedule.method, schedule.url, attempt, schedule)
        )


class _Walk:
    """The failures of some shards, newest first, from bounded reads: an asynchronous iterator of those that are wanted.

    Each shard's rows are read some at a time. Those that no shard's next page can precede are in order. `place` is how far
    it has come. `at_least`: it stopped before the end, because it had read `read_max`. `first`: so many rows are wanted; a
    little more is read at first, and more each time, as few may be wanted of what is read."""

    def __init__(
        self,
        read: Callable[[int, FailurePlace | None, int], Awaitable[list[FailureRow]]],
        shards: Iterable[int],
        after: FailurePlace | None,
        since: int | None,
        is_wanted: Callable[[FailureRow], bool],
        read_max: int,
        first: int | None,
    ) -> None:
        self.place = after
        self.at_least = False
        self._read, self._since, self._is_wanted = read, since, is_wanted
        #: Where the next page of each shard begins that may have one.
        self._open: dict[int, FailurePlace | None] = dict.fromkeys(shards, after)
        self._page = min(max(read_max // (16 * max(len(self._open), 1)), _PAGE_MIN), _PAGE_MAX)
        self._waiting: dict[int, list[FailureRow]] = {shard_id: [] for shard_id in self._open}
        # At least one page of each shard.
        self._left = max(read_max, self._page * len(self._open))
        self._page_max = self._page
        if first is not None:
            # Twice a shard's share, because some shards have more of them than others.
            self._page = max(min(2 * first // max(len(self._open), 1), self._page), _PAGE_MIN)

    async def __aiter__(self) -> AsyncIterator[list[tuple[int, FailureRow]]]:
        while self._open and self._left >= self._page * len(self._open):
            # All that have little left, and not only the one without, so that few reads follow one another.
            few = [shard_id for shard_id in self._open if len(self._waiting[shard_id]) <= self._page // 2]
            await in_parallel(self._next_page, few, asyncio.Semaphore(_READS_MAX))
            # The oldest row that each open shard has; what follows in it is older still.
            ends = [self._waiting[shard_id][-1].place for shard_id in self._open]
            yield self._taken(max(ends, default=None))
            self._page = min(2 * self._page, self._page_max)
        self.at_least = bool(self._open)

    async def _next_page(self, shard_id: int) -> None:
        rows = await self._read(shard_id, self._open[shard_id], self._page)
        self._left -= len(rows)
        self._waiting[shard_id] += rows
        if len(rows) < self._page or (self._since is not None and rows[-1].failed_at < self._since):
            del self._open[shard_id]
        else:
            self._open[shard_id] = rows[-1].place

    def _taken(self, end: FailurePlace | None) -> list[tuple[int, FailureRow]]:
        """The rows that wait, down to a place (None: all), in order."""
        taken = []
        for shard_id, rows in self._waiting.items():
            ready = len(rows) if end is None else _ahead_of(rows, end)
            taken += [(shard_id, row) for row in rows[:ready]]
            del rows[:ready]
        taken.sort(key=lambda each: each[1].place, reverse=True)
        if taken:
            self.place = taken[-1][1].place
        return [
            (shard_id, row)
            for shard_id, row in taken
            if (self._since is None or row.failed_at >= self._since) and self._is_wanted(row)
        ]


def _ahead_of(rows: list[FailureRow], end: FailurePlace) -> int:
    """How many of the rows, newest first, are not older than a place."""
    return bisect_left(rows, True, key=lambda row: row.place < end)


def _last(attempts: Sequence[LoggedAttempt]) -> LoggedAttempt | None:
    return attempts[-1] if attempts else None


# ---------------------------------------------------------------------- handles


def failure_id(row: FailureRow) -> str:
    """The opaque text by which clients name a failure within its namespace."""
    kind = kind_of(row)
    # A notification's uuid does not follow from its id.
    named = row.uuid if kind is FailedKind.NOTIFICATION else row.timer_id.encode()
    return to_opaque(_HANDLE.pack(kind[0].encode(), row.failed_at, row.generation) + named)


def _place_of(namespace: str, handle: str, position: int) -> tuple[FailurePlace, bool]:
    """The place of a failure, and whether it is one of this namespace for certain, because the uuid is made of the name."""
    try:
        data = from_opaque(handle)
        kind, at, generation = _HANDLE.unpack(data[: _HANDLE.size])
        named = data[_HANDLE.size :]
        if kind == b"n" and len(named) == UUID_BYTES:
            return (at, named, generation), False
        uuid_of = {b"t": timer_uuid, b"o": schedule_uuid}[kind]
        uuid = uuid_of(namespace, named.decode())
    except (struct.error, ValueError, KeyError):
        raise InvalidInput(
            FieldError(f"ids[{position}]", "is not a failureId that a list of failures returned")
        ) from None
    return (at, uuid, generation), True


def _before(place: FailurePlace) -> FailurePlace:
    """The last place before another one, behind which that one is the first. No row has the first place of an instant."""
    at, uuid, generation = place
    number = max(int.from_bytes(uuid + generation, "big") - 1, 0)
    before = number.to_bytes(UUID_BYTES + GENERATION_BYTES, "big")
    return at, before[:UUID_BYTES], before[UUID_BYTES:]

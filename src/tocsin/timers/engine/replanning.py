"""Plans waiting schedules again that nodes with older time zones have planned, after this node has claimed their shards, and
those whose calendars were changed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from tocsin.model.calendar import NO_CALENDARS, Calendars
from tocsin.model.errors import RecordUndecodable, ShardMoved, StoreError, TocsinError, Unavailable
from tocsin.model.ids import namespace_hash, shard_of, shards_of_namespace
from tocsin.model.namespace import Namespace
from tocsin.model.recurrence import tzdata_version
from tocsin.model.schedule import Replan
from tocsin.model.timer import UNUSABLE, decode_record, planned_schedule
from tocsin.ports.completion import Completion
from tocsin.ports.observer import LoadFailed, SchedulesReplanned
from tocsin.ports.store import StoredRow
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.recurring import has_moved, is_outdated
from tocsin.timers.engine.rows import OpKind, Row, WriteOp
from tocsin.timers.engine.shard import Shard

#: Schedules that are read at once, and those that are checked before other requests get their turn: to reckon an instant
#: takes 0.1 ms, and to read a new expression a millisecond.
_PAGE_ROWS, _ROWS_PER_TURN = 100, 10
#: Pause for each row after a page, so that 100,000 schedules take two minutes and little of the store's and the node's time;
#: and the rows for which a shorter page counts, because a namespace without schedules takes a read, too.
_PAUSE_PER_ROW_S, _PAUSE_ROWS_MIN = 0.001, 10


class Replanning:
    """Passes over all schedules, page by page, for the shards that this node has claimed since the last one, and over those
    of a namespace whose calendars have changed, for all its shards. Rows that another node may have written since are checked
    again, those that only this node has written are not, unless calendars have changed."""

    def __init__(self, context: Context, shards: Mapping[int, Shard], total_shards: int) -> None:
        self._context = context
        self._shards = shards
        self._total_shards = total_shards
        # The epochs in which shards were checked.
        self._checked: dict[int, int] = {}
        # The calendars of namespaces by which all schedules were checked. Those of shards that were not this node's then
        # are checked when it owns them.
        self._calendars: dict[str, Calendars] = {}
        self._moved = 0

    async def check(self) -> None:
        """One pass, if a shard needs it. After a failure the next one starts over."""
        claimed = self._begin()
        self._moved = 0
        try:
            for namespace in list(self._context.namespaces.values()):
                calendars = self._context.calendars_of(namespace.name)
                wanted = claimed
                if self._calendars.get(namespace.name, NO_CALENDARS) is not calendars:
                    wanted = {number for number, shard in self._shards.items() if shard.window is not None}
                    for number in self._shards.keys() - wanted:
                        self._checked.pop(number, None)
                if wanted:
                    await self._check_namespace(namespace, wanted, calendars)
                self._calendars[namespace.name] = calendars
        except StoreError as error:
            self._context.observe(LoadFailed(None, str(error)))
            for shard_id in claimed:
                self._checked.pop(shard_id, None)
        if self._moved:
            self._context.observe(SchedulesReplanned(self._moved, tzdata_version()))

    def _begin(self) -> set[int]:
        """The shards whose rows another node may have planned since they were checked. From now on they count as checked."""
        wanted = set()
        for shard_id, shard in self._shards.items():
            if shard.window is None or shard.draining:
                continue
            epoch, checked = shard.window.epoch, self._checked.get(shard_id)
            if checked is None or epoch > checked + 1:
                wanted.add(shard_id)
            self._checked[shard_id] = epoch
        return wanted

    async def _check_namespace(self, namespace: Namespace, wanted: set[int], calendars: Calendars) -> None:
        arc, total = namespace_hash(namespace.name), self._total_shards
        shards = shards_of_namespace(arc, namespace.num_shards, total)
        if wanted.isdisjoint(shards):
            return
        after_id, store = "", self._context.store
        while True:
            page = await self._context.in_turn(store.list_schedules(namespace.name, shards, after_id, _PAGE_ROWS))
            for number, row in enumerate(page, 1):
                if number % _ROWS_PER_TURN == 0:
                    await asyncio.sleep(0)
                shard_id = shard_of(arc, row.uuid, namespace.num_shards, total)
                if shard_id in wanted and _has_moved(row, calendars):
                    self._replan(shard_id, row.uuid, namespace.name)
            await asyncio.sleep(_PAUSE_PER_ROW_S * max(len(page), _PAUSE_ROWS_MIN))
            if len(page) < _PAGE_ROWS:
                return
            after_id = page[-1].timer_id

    def _replan(self, shard_id: int, uuid: bytes, namespace: str) -> None:
        """Has the window plan the row again. Whether it still needs that is checked when the batch is
        assembled."""
        op = WriteOp(OpKind.SCHEDULE, uuid, namespace, change=Replan(), completion=_Replanned(self._checked, shard_id))
        try:
            self._shards[shard_id].accept(op)
        except ShardMoved:
            # Its next owner checks it, perhaps this node.
            self._checked.pop(shard_id, None)
            return
        self._moved += 1


class _Replanned(Completion[Row | None]):
    """Removes the shard from those that were checked, if one of its rows was not written, or may not have been."""

    __slots__ = ("_checked", "_shard_id")

    def __init__(self, checked: dict[int, int], shard_id: int) -> None:
        super().__init__()
        self._checked, self._shard_id = checked, shard_id

    def _resolved(self, row: Row | None) -> None:
        """It is written."""

    def _refused(self, error: TocsinError) -> None:
        if isinstance(error, Unavailable | StoreError):
            self._checked.pop(self._shard_id, None)

    def _failed(self, error: Exception) -> None:
        self._checked.pop(self._shard_id, None)


def _has_moved(row: StoredRow, calendars: Calendars) -> bool:
    """Whether the stored row waits for another instant than by this node's time zones and calendars. A row that can't be read
    is no matter here: the loader reports it, or the dispatcher when it is due."""
    planned = planned_schedule(row.record)
    if planned is None:
        return False
    definition, state = planned.definition, planned.state
    exclusions = calendars.exclusions(definition.only, definition.skip)
    outdated = definition.cron is not None and is_outdated(state.tzdata)
    if not outdated and state.calendars == ("" if exclusions is None else exclusions.stamp):
        return False
    try:
        return has_moved(decode_record(row.record), row.uuid, calendars)
    except (RecordUndecodable, *UNUSABLE):
        return False

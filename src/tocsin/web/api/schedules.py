"""The operations on schedules."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

from msgspec import UNSET

from tocsin.model.access import Role
from tocsin.model.calendar import Calendars
from tocsin.model.instants import US_PER_DAY, format_instant
from tocsin.model.occurrences import Occurrences, instants, next_instants
from tocsin.model.schedule import Definition, ScheduleStatus
from tocsin.ports.tracing import CreateTraces
from tocsin.timers.schedules import Schedules, ScheduleView
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest
from tocsin.web.http import schedule_wire as wire
from tocsin.web.http.convert import RequestParser
from tocsin.web.http.repeated import UNCHANGED, refuse_key
from tocsin.web.http.schedules import (
    ScheduleParser,
    excluded_answer,
    expected_version,
    history_answer,
    schedule_answer,
    sentence,
)

#: How far excluded instants are shown of what has no others.
_WITHOUT_INSTANTS_US = 366 * US_PER_DAY

_operation = partial(Operation, reach=Reach.NAMESPACE)


class ScheduleHandlers:
    """Handles create, get, update, delete and list, pause and resume, trigger, backfill and replay, preview and
    history."""

    def __init__(self, schedules: Schedules, parser: RequestParser, traces: CreateTraces | None = None) -> None:
        self._traces = traces
        self._schedules = schedules
        self._parser = ScheduleParser(parser)

    @_operation("createSchedule", "/api/v1/schedules/create", Role.WRITE)
    async def create(self, request: ApiRequest, sent: wire.CreateSchedule) -> wire.Schedule:
        """The schedule is durable when the response arrives. A schedule with the same id gets the new definition and keeps
        its state: counts, history and anchor. If its timing changes, it is planned again, from now on; if nothing
        changes, nothing is written. So a deployment can create its schedules each time. A dry run writes nothing in any case:
        the response shows the schedule as it would be."""
        traceparent = request.trace(self._traces, "createSchedule")
        wanted = await self._schedules.turns.run(self._parser.new, sent, request.now_us, traceparent)
        return _changed(
            request,
            await self._schedules.create(
                *wanted,
                expected_version=expected_version(sent),
                paused=sent.paused is True,
                dry_run=sent.dry_run is True,
            ),
        )

    @_operation("getSchedule", "/api/v1/schedules/get", Role.READ)
    async def get(self, request: ApiRequest, sent: wire.ScheduleName) -> wire.Schedule:
        """Live, or ended within its namespace's retention."""
        return schedule_answer(await self._schedules.get(*self._parser.name(sent)))

    @_operation("updateSchedule", "/api/v1/schedules/update", Role.WRITE)
    async def update(self, request: ApiRequest, sent: wire.UpdateSchedule) -> wire.Schedule:
        """Changes only the given fields. An attempt in flight goes on, and its result counts."""
        changes, definition = self._parser.changes(sent)
        expected = expected_version(sent)
        return _changed(
            request, await self._schedules.update(sent.namespace, sent.schedule_id, changes, definition, expected)
        )

    @_operation("listSchedules", "/api/v1/schedules/list", Role.READ)
    async def list(self, request: ApiRequest, sent: wire.ListSchedules) -> wire.SchedulePage:
        """Active and paused ones. Paginated: send nextCursor back as cursor until a response has none. Even an empty page may
        have one, if few schedules have the status. The namespace * lists the schedules of all namespaces that the API key
        has access to, one namespace after the other, in an order of namespaces that the store decides."""
        wanted = self._parser.list_request(sent, request.key)
        listed, cursor = await self._schedules.list_answers(wanted, schedule_answer)
        return wire.SchedulePage(listed, UNSET if cursor is None else cursor)

    @_operation("pauseSchedule", "/api/v1/schedules/pause", Role.WRITE)
    async def pause(self, request: ApiRequest, sent: wire.ScheduleName) -> wire.Schedule:
        """An attempt in flight ends; it is not retried. Until it is resumed, only triggers fire. A backfill recovers instants
        that pass meanwhile."""
        return _changed(request, await self._schedules.pause(*self._parser.name(sent)))

    @_operation("resumeSchedule", "/api/v1/schedules/resume", Role.WRITE)
    async def resume(self, request: ApiRequest, sent: wire.ScheduleName) -> wire.Schedule:
        """It fires again, from its next instant on."""
        return _changed(request, await self._schedules.resume(*self._parser.name(sent)))

    @_operation("triggerSchedule", "/api/v1/schedules/trigger", Role.WRITE)
    async def trigger(self, request: ApiRequest, sent: wire.ScheduleName) -> wire.Schedule:
        """In addition to its instants, and also while it is paused: at once, or as soon as the current occurrence has
        ended. Up to 100 triggers wait. Each request fires it once more."""
        refuse_key(request.headers)
        return schedule_answer(await self._schedules.trigger(*self._parser.name(sent)))

    @_operation("backfillSchedule", "/api/v1/schedules/backfill", Role.WRITE)
    async def backfill(self, request: ApiRequest, sent: wire.BackfillSchedule) -> wire.Schedule:
        """Fires the instants from after (inclusive) to before (exclusive) once more, whether they fired before or not, one
        after the other and in turn with regular ones. Up to 10 ranges wait."""
        refuse_key(request.headers)
        wanted = self._parser.backfill(sent)
        return schedule_answer(await self._schedules.backfill(sent.namespace, sent.schedule_id, *wanted))

    @_operation("skipSchedule", "/api/v1/schedules/skip", Role.WRITE)
    async def skip(self, request: ApiRequest, sent: wire.SkipSchedule) -> wire.Schedule:
        """One instant to come does not fire, and is counted as excluded once it has passed. It doesn't move. Up to 100
        wait to be passed."""
        return _changed(request, await self._schedules.skip(*self._parser.name(sent), self._parser.skip(sent)))

    @_operation("unskipSchedule", "/api/v1/schedules/unskip", Role.WRITE)
    async def unskip(self, request: ApiRequest, sent: wire.SkipSchedule) -> wire.Schedule:
        """An instant to come that was skipped fires all the same."""
        return _changed(request, await self._schedules.unskip(*self._parser.name(sent), self._parser.skip(sent)))

    @_operation("replaySchedule", "/api/v1/schedules/replay", Role.WRITE)
    async def replay(self, request: ApiRequest, sent: wire.ReplaySchedule) -> wire.Schedule:
        """Failed occurrences fire again, as the schedule is defined now, each under its own webhook-id, so that a receiver
        that has done the work recognises the repetition. They fire one after the other and in turn with regular ones, before
        backfills; those of a paused schedule when it is resumed. Up to 100 wait. What waits already is not taken twice."""
        refuse_key(request.headers)
        instants = self._parser.replay(sent)
        return _changed(request, await self._schedules.replay(sent.namespace, sent.schedule_id, instants))

    @_operation("previewSchedule", "/api/v1/schedules/preview", Role.READ)
    async def preview(self, request: ApiRequest, sent: wire.PreviewSchedule) -> wire.Preview:
        """Of a definition, or of a schedule named by namespace and scheduleId: when it fires, and which instants until the
        last of these don't fire, and why. Nothing is written."""
        turns, now_us = self._schedules.turns, request.now_us
        wanted, count = await turns.run(self._parser.preview, sent, now_us)
        if isinstance(wanted, Definition):
            namespace = "" if sent.namespace is UNSET else sent.namespace
            if namespace:
                await self._schedules.check_calendars(namespace, wanted)
            calendars = self._schedules.calendars(namespace)
            following = instants(wanted, None, now_us, count, created_at=now_us, calendars=calendars)
            occurrences = Occurrences(wanted, b"", now_us, calendars)
        else:
            view = await self._schedules.get(*wanted)
            calendars, wanted = self._schedules.calendars(wanted[0]), view.definition
            following = _following(view, now_us, count, calendars)
            occurrences = self._schedules.instants_of(view)
        found = await turns.each(following)
        until = found[-1] if found else now_us + _WITHOUT_INSTANTS_US
        excluded = await turns.each(islice(occurrences.excluded_instants(now_us, until), wire.EXCLUDED_MAX))
        return wire.Preview(list(map(format_instant, found)), sentence(wanted), list(map(excluded_answer, excluded)))

    @_operation("scheduleHistory", "/api/v1/schedules/history", Role.READ)
    async def history(self, request: ApiRequest, sent: wire.ScheduleHistory) -> wire.OccurrencePage:
        """With their attempts, and the instants that did not fire. Kept for the namespace's retention, as its history mode
        selects, and no more than the newest ones (occurrences_kept). Paginated: send nextCursor back as cursor until a
        response has none."""
        return history_answer(await self._schedules.occurrences(*self._parser.history_request(sent)))

    @_operation("deleteSchedule", "/api/v1/schedules/delete", Role.WRITE, status=204)
    async def delete(self, request: ApiRequest, sent: wire.DeleteSchedule) -> None:
        """It does not fire again. An attempt that is in flight may still arrive; it is not retried."""
        await self._schedules.delete(*self._parser.deletion(sent))


def _following(view: ScheduleView, after_us: int, count: int, calendars: Calendars) -> Iterator[int]:
    """The next instants of a schedule, as far as its number of occurrences allows; none of one that has ended."""
    schedule = view.timer.schedule
    if view.status is ScheduleStatus.ENDED or schedule is None:
        return iter(())
    return next_instants(schedule, view.uuid, view.timer.created_at, after_us, count, calendars)


def _changed(request: ApiRequest, view: ScheduleView) -> wire.Schedule:
    """The schedule; a header reports if nothing was written."""
    if view.unchanged:
        request.answer_headers = [UNCHANGED]
    return schedule_answer(view)

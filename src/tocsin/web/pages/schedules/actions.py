"""Actions on an existing schedule: pause, resume, fire once, backfill, replay, delete."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from starlette.responses import RedirectResponse, Response

from tocsin.model.errors import BacklogFull, FieldError, InvalidInput, ScheduleEnded
from tocsin.model.occurrences import Occurrences
from tocsin.model.recurrence import time_zone
from tocsin.model.schedule import MISSED_MAX
from tocsin.web.http import schedule_wire as wire
from tocsin.web.http.errors import problem_kind
from tocsin.web.http.schedules import ScheduleParser
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.presentation import sentence, with_query
from tocsin.web.pages.schedules.detail import ScheduleDetail
from tocsin.web.pages.schedules.forms import local_instant
from tocsin.web.pages.schedules.presentation import schedule_path, zone_of, zoned
from tocsin.web.pages.site import Part, RouteEntry, Site, route

#: Does something to the schedule with this namespace and id.
Action = Callable[[str, str], Awaitable[object]]
#: The labels of the backfill's fields by their names in the API.
_LABELS = {"after": "From", "before": "To"}


class ScheduleActions(Part):
    """Each action redirects to a page that confirms it, or responds with the schedule's page and why it was refused."""

    def __init__(self, site: Site, detail: ScheduleDetail) -> None:
        super().__init__(site)
        self._detail = detail
        self._schedules = site.schedules
        self._schedule_parser = ScheduleParser(site.parser)

    def routes(self) -> Sequence[RouteEntry]:
        schedules = self._schedules
        actions: tuple[tuple[str, Action, str], ...] = (
            ("schedules/pause", schedules.pause, "paused"),
            ("schedules/resume", schedules.resume, "resumed"),
            ("schedules/trigger", schedules.trigger, "triggered"),
            ("schedules/delete", schedules.delete, "deleted"),
        )
        return [*super().routes(), *(("POST", f"/{action[0]}", partial(self._act, *action)) for action in actions)]

    @route("GET", "/schedules/backfill")
    async def count_backfill(self, context: RequestContext) -> Response:
        """Shows how many instants a range has, and asks whether to fire them."""
        name = context.writable(context.query)
        view = await self._schedules.get(*name)
        zone = zone_of(view.definition)
        errors: list[FieldError] = []
        after, before = (
            local_instant(name, context.query.get(name), time_zone(zone), errors) for name in ("after", "before")
        )
        try:
            if errors:
                raise InvalidInput(*errors)
            from_us, to_us = self._schedule_parser.backfill(wire.BackfillSchedule(*name, after, before))
        except InvalidInput as error:
            return await self._refused(context, name, error)
        number, first, last = await self._schedules.turns.run(
            _passed, self._schedules.instants_of(view), from_us - 1, to_us - 1
        )
        return self._pages.page(
            "schedules/backfill.html",
            context,
            title="Backfill",
            timer=view.timer,
            zone=zone,
            after=after,
            before=before,
            number=number,
            number_max=MISSED_MAX,
            ends=zoned([first, last], zone) if number and first is not None and last is not None else [],
        )

    @route("POST", "/schedules/backfill")
    async def backfill(self, context: RequestContext) -> Response:
        """Fires the instants of a range once more."""

        async def fire(namespace: str, schedule_id: str) -> None:
            sent = wire.BackfillSchedule(namespace, schedule_id, context.form.get("after"), context.form.get("before"))
            await self._schedules.backfill(namespace, schedule_id, *self._schedule_parser.backfill(sent))

        return await self._act("schedules/backfill", fire, "backfilled", context)

    @route("POST", "/schedules/skip")
    async def skip(self, context: RequestContext) -> Response:
        """Skips an instant to come."""
        return await self._act("schedules/skip", self._once(context, self._schedules.skip), "skipped", context)

    @route("POST", "/schedules/unskip")
    async def unskip(self, context: RequestContext) -> Response:
        """Fires at an instant all the same that was to be skipped."""
        return await self._act("schedules/unskip", self._once(context, self._schedules.unskip), "unskipped", context)

    def _once(self, context: RequestContext, change: Callable[[str, str, int], Awaitable[object]]) -> Action:
        async def act(namespace: str, schedule_id: str) -> None:
            sent = wire.SkipSchedule(namespace, schedule_id, context.form.get("instant"))
            await change(namespace, schedule_id, self._schedule_parser.skip(sent))

        return act

    @route("POST", "/schedules/replay")
    async def replay(self, context: RequestContext) -> Response:
        """Fires a failed occurrence again."""

        async def fire(namespace: str, schedule_id: str) -> None:
            sent = wire.ReplaySchedule(namespace, schedule_id, [context.form.get("instant")])
            await self._schedules.replay(namespace, schedule_id, self._schedule_parser.replay(sent))

        return await self._act("schedules/replay", fire, "replayed", context)

    async def _act(self, operation: str, action: Action, notice: str, context: RequestContext) -> Response:
        """Does something to the schedule that the form names, as the API's operation does."""
        name = context.writable(context.form)
        try:
            await action(*name)
        except (InvalidInput, ScheduleEnded, BacklogFull) as error:
            return await self._refused(context, name, error)
        context.changed(operation, *name)
        return RedirectResponse(with_query(schedule_path(*name), {"notice": notice}), 303)

    async def _refused(
        self, context: RequestContext, name: tuple[str, str], error: InvalidInput | ScheduleEnded | BacklogFull
    ) -> Response:
        return await self._detail.of(context, *name, status=problem_kind(error).status, problem=_reason(error))


def _reason(error: InvalidInput | ScheduleEnded | BacklogFull) -> str:
    """Why an action was refused, with the labels of the backfill's fields."""
    if not isinstance(error, InvalidInput):
        return sentence(error)
    return " ".join(f"{_LABELS.get(bad.path, bad.path)} {bad.reason}." for bad in error.errors)


def _passed(occurrences: Occurrences, after_us: int, until_us: int) -> tuple[int, int | None, int | None]:
    """How many instants of a schedule are in (after, until], the first and the last."""
    return occurrences.count(after_us, until_us), occurrences.after(after_us), occurrences.until(until_us)

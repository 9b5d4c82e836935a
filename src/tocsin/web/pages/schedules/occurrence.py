"""`/schedules/{namespace}/{id}/occurrences/{instant}`: one occurrence with its attempts, or instants that were missed."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from tocsin.model.access import Role
from tocsin.model.errors import ScheduleNotFound
from tocsin.model.instants import format_instant, parse_instant
from tocsin.model.run import FAILED_RUNS, Run, RunStatus
from tocsin.timers.schedules import ScheduleView
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.presentation import span, with_query
from tocsin.web.pages.schedules.detail import ScheduleDetail
from tocsin.web.pages.schedules.outcomes import Entry, base_firing, entries, late_us, name_of, state_of_entry
from tocsin.web.pages.schedules.presentation import version, waits_for_resumption, zone_of, zoned
from tocsin.web.pages.site import Part, Site, route

#: Occurrences that one read for a page returns. The history is read from its newest end up to the one that is shown, which is
#: at most what is kept of it (`occurrences_kept`).
_READ = 200
#: Why instants did not fire, by reason, as a sentence that follows their number.
_MISSED_WHY = {
    "late": "They passed before the schedule could fire, and it does not fire every missed instant.",
    "overlap": "They passed while the occurrence before them had not ended: occurrences of a schedule do not overlap.",
    "window": "When the schedule could fire again, they were older than its catch-up window.",
    "paused": "They passed while the schedule was paused.",
}


@dataclass(frozen=True, slots=True)
class AttemptBar:
    """Where an attempt lies between the beginning of the first one and the end of the last one, in thousandths."""

    x: int
    width: int


class ScheduleOccurrence(Part):
    """The page of one occurrence."""

    def __init__(self, site: Site, detail: ScheduleDetail) -> None:
        super().__init__(site)
        self._detail = detail
        self._schedules = site.schedules

    @route("GET", "/schedules/{namespace}/{id:path}/occurrences/{instant}")
    async def show(self, context: RequestContext) -> Response:
        """The page, or for a script the part of it that changes while it is open. `firing` names one of several occurrences
        with the same instant; otherwise the newest one is shown."""
        parameters = context.request.path_params
        namespace, text = parameters["namespace"], parameters["instant"]
        schedule_id = parameters["id"] or context.query.exact("id")
        context.permit(Role.READ, namespace)
        try:
            view = await self._schedules.get(namespace, schedule_id)
        except ScheduleNotFound:
            # An id can end like this path.
            return await self._detail.of(context, namespace, f"{schedule_id}/occurrences/{text}")
        found, newer, older = await self._find(namespace, schedule_id, text, context.query.exact("firing"))
        run, missed = found
        ended = missed is not None or run.status is not RunStatus.PENDING
        zone = zone_of(view.definition)
        return self._pages.page(
            "schedules/occurrence_live.html" if context.fragment else "schedules/occurrence.html",
            context,
            title=f"{schedule_id} at {format_instant(found.at)}",
            view=view,
            timer=view.timer,
            entry=found,
            run=run,
            missed=missed,
            newer=newer,
            older=older,
            state=state_of_entry(found, view, context.now_us),
            local=zoned([found.at], zone)[0].local,
            why=_why(found, older, view),
            bars=_bars(run) if missed is None else [],
            may_replay=run.status in FAILED_RUNS and missed is None and context.principal.may(Role.WRITE, namespace),
            backfill=_backfill(found, context.principal.may(Role.WRITE, namespace)),
            shown_version=f"{version(view)}.{run.status}.{len(run.attempts)}",
            ended=ended,
            live=None if ended else with_query("/ui/live/schedules", {"namespace": namespace}),
        )

    async def _find(
        self, namespace: str, schedule_id: str, text: str, firing: str
    ) -> tuple[Entry, Entry | None, Entry | None]:
        """The entry at an instant, the next newer one and the next older one. Raises ScheduleNotFound."""
        unknown = ScheduleNotFound(
            f"the history of schedule {schedule_id!r} has no occurrence at {text}; it is perhaps removed already"
        )
        try:
            at = parse_instant(text)
        except ValueError:
            raise unknown from None
        found: Entry | None = None
        newer: Entry | None = None
        cursor: str | None = None
        while True:
            page = await self._schedules.occurrences(namespace, schedule_id, _READ, cursor)
            for entry in entries(page.runs):
                if found is not None:
                    return found, newer, entry
                if _is_at(entry, at, firing):
                    found = entry
                else:
                    newer = entry
            cursor = page.cursor
            if cursor is None:
                if found is None:
                    raise unknown
                return found, newer, None


def _is_at(entry: Entry, at: int, firing: str) -> bool:
    run, missed = entry
    if missed is not None:
        return not firing and missed.first_at <= at <= missed.last_at
    # A replay without an attempt has no name of its own yet.
    return run.execute_at == at and (firing in ("", name_of(run)) or (run.replay and firing == f"{base_firing(run)}~"))


def _why(entry: Entry, older: Entry | None, view: ScheduleView) -> str:
    """Why the occurrence was late, did not fire, or waits; empty if there is nothing to explain. Instants are those of
    RFC 3339."""
    run, missed = entry
    if missed is not None:
        return _MISSED_WHY.get(missed.reason, f"The reason is {missed.reason}.")
    if run.status is RunStatus.PENDING and waits_for_resumption(view):
        return "The schedule is paused. When it is resumed, this instant is skipped if it has passed by then."
    late = late_us(run)
    if late is None:
        return ""
    words = f"The first attempt began {span(late)} after the instant. "
    ended_at = None if older is None or older.missed is not None else _ended_at(older.run)
    if ended_at is not None and ended_at > run.execute_at:
        return (
            f"{words}The occurrence before it ended at {format_instant(ended_at)}, and occurrences of a schedule do not "
            "overlap."
        )
    return (
        f"{words}The history does not record what held it back: an outage of the node or its database, a paused namespace, "
        "or a destination with as many requests in flight as it may have."
    )


def _ended_at(run: Run) -> int | None:
    return run.attempts[-1].at + run.attempts[-1].duration_us if run.attempts else None


def _bars(run: Run) -> list[AttemptBar]:
    if not run.attempts:
        return []
    first, last = run.attempts[0], run.attempts[-1]
    whole_us = max(last.at + last.duration_us - first.at, 1)
    return [
        AttemptBar(1000 * max(each.at - first.at, 0) // whole_us, max(1000 * each.duration_us // whole_us, 6))
        for each in run.attempts
    ]


def _backfill(entry: Entry, may_write: bool) -> dict[str, str] | None:
    """The range of a backfill that fires missed instants."""
    missed = entry.missed
    if missed is None or not may_write:
        return None
    return {"after": format_instant(missed.first_at), "before": format_instant(missed.last_at + 1)}

"""`/schedules/{namespace}/{id}`: a schedule, its next instants, and its occurrences."""

from __future__ import annotations

from itertools import islice

from starlette.responses import Response

from tocsin.model.access import Role
from tocsin.model.errors import InvalidInput
from tocsin.model.instants import US_PER_DAY
from tocsin.model.recurrence import time_zone
from tocsin.model.schedule import Definition, ScheduleStatus
from tocsin.ports.forward import credential_of
from tocsin.timers.schedules import ScheduleView
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.presentation import whole_span, with_query
from tocsin.web.pages.schedules.outcomes import STRIP_CELLS, entries, strip
from tocsin.web.pages.schedules.presentation import (
    CATCH_UP_WORDS,
    ON_SKIPPED_WORDS,
    excluded_words,
    in_zone,
    schedule_path,
    version,
    zone_of,
    zoned,
)
from tocsin.web.pages.site import Part, Site, route

#: Occurrences on one page: those of the strip.
_OCCURRENCES = STRIP_CELLS
#: Notices after an action, by the `notice` parameter of the redirect.
_NOTICES = {
    "created": "Schedule created.",
    "replaced": "Schedule replaced. It keeps its counts and its history.",
    "updated": "Schedule updated.",
    "unchanged": "The schedule already has this definition. Nothing was written.",
    "paused": "Schedule paused. It makes no calls until it is resumed, except when you fire it by hand. Instants that pass "
    "are skipped; a backfill fires them later.",
    "resumed": "Schedule resumed. It fires again from its next instant onwards.",
    "triggered": "The schedule fires once now, or as soon as the current occurrence has ended.",
    "replayed": "The occurrence fires again, after what is under way and in turn with regular instants.",
    "backfilled": "Backfill started. Its instants fire one after the other.",
    "skipped": "The instant is skipped.",
    "unskipped": "The instant fires.",
    "deleted": "Schedule deleted. An in-flight attempt may still arrive.",
}
#: Why a schedule is paused, by the reason that it carries.
_PAUSED = {"request": "This schedule was paused by request.", "failures": "Paused automatically: {failures} failed."}


#: Excluded instants that are shown, and how far they are looked for if no instant is left.
_EXCLUDED_SHOWN, _WITHOUT_INSTANTS_US = 7, 366 * US_PER_DAY


class ScheduleDetail(Part):
    """The page of one schedule. Its path matches ids with slashes, so it must come after all others."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._schedules = site.schedules

    @route("GET", "/schedules/{namespace}/{id:path}")
    async def show(self, context: RequestContext) -> Response:
        """The page, or for a script the part of it that changes while it is open."""
        parameters = context.request.path_params
        return await self.of(context, parameters["namespace"], parameters["id"] or context.query.exact("id"))

    async def of(
        self, context: RequestContext, namespace: str, schedule_id: str, *, status: int = 200, problem: str = ""
    ) -> Response:
        """The page of a schedule; `problem` is the reason why an action on it was refused."""
        context.permit(Role.READ, namespace)
        view = await self._schedules.get(namespace, schedule_id, explained=True)
        known = await self.namespace(namespace)
        cursor = context.query.get("cursor")
        occurrences = await self._schedules.occurrences(namespace, schedule_id, _OCCURRENCES, cursor or None)
        here = schedule_path(namespace, schedule_id)
        zone = zone_of(view.definition)
        notice = context.query.get("notice")
        may_write = context.principal.may(Role.WRITE, namespace)
        opposite = {"paused": "resume", "resumed": "pause"}.get(notice)
        undone = may_write and (view.paused is not None) == (notice == "paused")
        return self._pages.page(
            "schedules/detail_live.html" if context.fragment else "schedules/detail.html",
            context,
            status,
            title=view.timer.id,
            view=view,
            timer=view.timer,
            shown_version=version(view),
            ended=view.status is ScheduleStatus.ENDED,
            namespace=known,
            zone=zone,
            following=zoned(view.next_instants, zone),
            excluded=await self._schedules.turns.run(self._excluded, view, context.now_us),
            skipped=zoned(view.skips, zone),
            occurrences=occurrences,
            entries=list(entries(occurrences.runs)),
            strip=None if cursor else strip(view, occurrences.runs),
            kept=self._schedules.occurrences_kept,
            cursor=cursor,
            here=here,
            older=with_query(here, {"cursor": occurrences.cursor or ""}),
            facts=_facts(view.definition),
            paused_words=_paused_words(view),
            credential=(credential_of(view.suspended or "") or ("", "", ""))[1],
            may_write=may_write,
            problem=problem,
            notice_text=_NOTICES.get(notice, ""),
            undo=(f"/schedules/{opposite}", {"namespace": namespace, "id": schedule_id})
            if opposite and undone
            else None,
            live=f"/ui/live/schedules?namespace={namespace}",
        )

    def _excluded(self, view: ScheduleView, now_us: int) -> list[str]:
        """The instants until the last that is shown that don't fire, and why."""
        if view.status is ScheduleStatus.ENDED or not view.definition.calendars:
            return []
        zone = time_zone(zone_of(view.definition))
        until = view.next_instants[-1] if view.next_instants else now_us + _WITHOUT_INSTANTS_US
        try:
            found = self._schedules.instants_of(view).excluded_instants(now_us, until)
        except InvalidInput:
            return []
        return [
            excluded_words(each, zone, in_zone(now_us, zone))
            for each in islice(found, _EXCLUDED_SHOWN)
            if each.reason != "once"
        ]


def _paused_words(view: ScheduleView) -> str:
    if view.paused is None:
        return ""
    words = _PAUSED.get(view.paused, f"This schedule is paused ({view.paused}).")
    count = view.definition.pause_after_failures
    return words.format(failures="an occurrence" if count == 1 else f"{count} occurrences in a row")


def _facts(definition: Definition) -> dict[str, str | int]:
    """The definition by the labels of the form; instants are numbers, those that are not set are left out."""
    jitter, failures = definition.jitter_us, definition.pause_after_failures
    facts: dict[str, str | int | None] = {
        "Cron": definition.cron,
        "Time zone": None if definition.cron is None else definition.time_zone,
        "Every": None if definition.every_us is None else whole_span(definition.every_us),
        "Counted from": definition.anchor,
        "Start": definition.start_at,
        "End (exclusive)": definition.end_at,
        "Max occurrences": None if definition.occurrences_max is None else str(definition.occurrences_max),
        "Only on": ", ".join(definition.only) or None,
        "Not on": ", ".join(definition.skip) or None,
        "Excluded instants": ON_SKIPPED_WORDS[definition.on_skipped] if definition.calendars else None,
        "Jitter": whole_span(jitter) if jitter else None,
        "Missed instants": CATCH_UP_WORDS[definition.catch_up],
        "Catch-up window": whole_span(definition.window_us),
        "Pauses": _pauses(failures),
        "Managed by": definition.managed_by,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _pauses(failures: int) -> str | None:
    if failures <= 1:
        return "after a failed occurrence" if failures else None
    return f"after {failures} failed occurrences in a row"

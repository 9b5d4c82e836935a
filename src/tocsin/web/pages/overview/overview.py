"""`/`: the page Now: whether timers fire on time, the last hour, what needs attention, and the next hour."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.namespace import DEFAULT_NAMESPACE
from tocsin.statistics.outages import Outage
from tocsin.statistics.reading import Hour, StatisticsReader
from tocsin.statistics.slots import CallCounts, Failures, Slot, split_place, total
from tocsin.tasks import Refreshed
from tocsin.web.http.errors import DOCS_URL
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.counts import BoundedCount
from tocsin.web.pages.outages import RUNBOOK
from tocsin.web.pages.overview import band, content
from tocsin.web.pages.overview.alarms import Alarms
from tocsin.web.pages.overview.concerns import Concerns
from tocsin.web.pages.overview.incidents import Failing, Reader, Reports, incidents
from tocsin.web.pages.overview.nodes import Nodes, Present
from tocsin.web.pages.overview.open_failures import (
    OpenCallFailures,
    OpenFailures,
    OpenTimerFailures,
    needing_attention,
    with_uncounted_ends,
)
from tocsin.web.pages.overview.paused import Paused, PausedSchedules
from tocsin.web.pages.overview.retries import CallRetries, Retries, TimerRetries
from tocsin.web.pages.overview.upcoming import Upcoming
from tocsin.web.pages.overview.waiting import HeldSchedules, Waiting
from tocsin.web.pages.overview.welcome import Welcome
from tocsin.web.pages.site import Part, Site, route

_HOUR_US, _MINUTE_US = 3_600_000_000, 60_000_000
#: Something fails at a place if it failed there within this time, which the verdict states.
_FAILS_US = 180_000_000
#: Minutes of the table that repeats the chart as text.
_MINUTES_SHOWN = 15
#: How often the body of an open page is drawn again at most; its verdict follows every second.
_REDRAWN_US = 3_000_000
#: Starts of reasons of `not_ready_because` that the pauses state in more detail.
_PAUSED = "dispatch paused: "


class _Scope(NamedTuple):
    """What a page is about: a namespace or, if it is empty, all that the principal may read."""

    namespace: str
    wanted: Callable[[str], bool]
    #: Whether nodes, store, service calls and numbers of the whole service are the principal's business.
    whole: bool


class Attention(NamedTuple):
    """What may need attention, as of a few seconds ago."""

    paused: Paused
    schedules: PausedSchedules
    alarms: Alarms
    failures: OpenTimerFailures
    retries: TimerRetries
    call_failures: OpenCallFailures
    call_retries: CallRetries
    waiting: Waiting
    held: HeldSchedules


class Overview(Part):
    """The page. `database` is the store's name and place."""

    def __init__(
        self,
        site: Site,
        reader: StatisticsReader,
        nodes: Nodes,
        attention: Attention,
        upcoming: Upcoming,
        welcome: Welcome,
        database: str,
    ) -> None:
        super().__init__(site)
        self._reader = reader
        self._nodes = nodes
        self._attention = attention
        self._paused = attention.paused
        self._failures = attention.failures
        self._schedules = attention.schedules
        self._waiting = attention.waiting
        self._upcoming = upcoming
        self._welcome = welcome
        self._database = database
        self._places_max = site.statistics.limits.places_max

    @route("GET", "/")
    async def show(self, context: RequestContext) -> Response:
        """The page, or for a script the part of it that changes. A principal without namespaces is redirected to its
        calls."""
        if not context.principal.may_somewhere(Role.READ):
            return RedirectResponse("/calls", 303)
        scope = self._scope(context)
        await self._refresh()
        hour, present = self._reader.hour(), self._nodes.present()
        concerns = self._concerns(scope)
        return self._pages.page(
            "overview/now_live.html" if context.fragment else "overview/now.html",
            context,
            title="Now",
            live=f"/ui/live/overview{f'?namespace={scope.namespace}' if scope.namespace else ''}",
            first=self._is_unused(context, hour, present),
            welcome=self._welcome,
            drawn=self._version(concerns, scope, hour, present),
            runbook=RUNBOOK if present.pauses and scope.whole else "",
            **self._values(context, concerns, scope, hour, present),
        )

    def _scope(self, context: RequestContext) -> _Scope:
        principal, namespace = context.principal, context.scope
        whole = principal.may(Role.READ)
        if namespace:
            context.permit(Role.READ, namespace)
            return _Scope(namespace, lambda name: name == namespace, whole)
        return _Scope("", lambda name: principal.may(Role.READ, name), whole)

    def _due(self, scope: _Scope, hour: Hour) -> list[int]:
        """Instants of the scope's timers that are due within the hour, as far as they were counted."""
        return [at for namespace, at in self._upcoming.due if at >= hour.at_us and scope.wanted(namespace)]

    def _concerns(self, scope: _Scope) -> Concerns:
        """What may need attention in the scope."""
        paused, schedules, alarms, wanted = self._paused, self._schedules, self._attention.alarms, scope.wanted
        held = self._attention.held
        return Concerns(
            namespaces=[each for each in paused.namespaces if wanted(each.name)],
            destinations=paused.destinations if scope.whole else (),
            flows=[each for each in paused.flows if wanted(each.namespace)],
            schedules=[each for each in schedules.all if wanted(each.namespace)],
            more_schedules=schedules.more,
            alarms=[each for each in alarms.all if wanted(each.namespace) and not each.unwatched],
            unwatched=[each for each in alarms.all if wanted(each.namespace) and each.unwatched],
            more_alarms=alarms.more,
            waits=[each for each in self._waiting.waits if wanted(each.namespace)],
            more_waits=self._waiting.more,
            held=[each for each in held.all if wanted(each.namespace)],
            more_held=held.more,
            unread=self._waiting.more or not held.complete,
        )

    def _failing(self, hour: Hour, failing: Mapping[str, Failures]) -> dict[str, Failures]:
        """Where timers failed in the last hour that need attention."""
        return self._needing(hour, failing, self._failures, self._attention.retries)

    def _calls_failing(self, hour: Hour, failing: Mapping[str, Failures]) -> dict[str, Failures]:
        """Likewise service calls."""
        open_failures = self._attention.call_failures
        counted = with_uncounted_ends(failing, open_failures.left([*hour.slots, hour.open]))
        return self._needing(hour, counted, open_failures, self._attention.call_retries)

    def _needing(
        self, hour: Hour, failing: Mapping[str, Failures], open_failures: OpenFailures, retries: Retries
    ) -> dict[str, Failures]:
        return needing_attention(failing, open_failures.left([*hour.slots, hour.open]), retries.recovered)

    def _outages(self, hour: Hour) -> list[Outage]:
        """The outages of the last hour."""
        return self._reader.outages(hour.at_us - _HOUR_US, hour.at_us)

    def _is_unused(self, context: RequestContext, hour: Hour, present: Present) -> bool:
        """Whether the service has had no timers or calls yet, and the principal may create some."""
        if not context.principal.may(Role.WRITE, DEFAULT_NAMESPACE):
            return False
        used = any(slot.counts().weight or slot.calls.any for slot in (hour.complete, hour.open))
        return not (used or present.window_timers or present.silent or self._upcoming.due or self._paused.namespaces)

    async def _refresh(self) -> None:
        paused, schedules, alarms, failures, retries, call_failures, call_retries, waiting, held = self._attention
        each: list[Refreshed] = [self._reader, paused, schedules, alarms, failures, waiting, held, self._upcoming]
        hour = self._reader.hour()
        if hour.complete.failing or hour.open.failing:
            each.append(retries)
        if hour.complete.calls_failing or hour.open.calls_failing:
            each.append(call_retries)
        if _some_call_failed(hour.complete) or _some_call_failed(hour.open):
            each.append(call_failures)
        await asyncio.gather(self._nodes.refresh(), *(part.refresh_for_page() for part in each))

    def _verdict(self, concerns: Concerns, scope: _Scope, hour: Hour, present: Present) -> content.Verdict:
        sums = total([hour.complete, hour.open], self._places_max)
        failing = {
            split_place(place)[1]
            for place, failures in self._failing(hour, sums.failing).items()
            if scope.wanted(split_place(place)[0]) and hour.at_us - failures.last_at <= _FAILS_US
        }
        others = [each for each in self._service.not_ready_because() if not each.startswith(_PAUSED)]
        if not self._waiting.more:
            overdue_s = content.overdue_elsewhere_s(present.overdue_s, self._waiting.waits, hour.at_us)
            present = present._replace(overdue_s=overdue_s)
        return content.verdict(
            concerns,
            minute=hour.last_minute.counts(scope.wanted),
            hour=sums.counts(scope.wanted),
            calls=hour.last_minute.calls if scope.whole else CallCounts(),
            present=present if scope.whole else present._replace(silent=[], overdue_s=None, unowned=0),
            due=BoundedCount(len(self._due(scope, hour)), more=self._upcoming.until_us is not None),
            failing=len(failing),
            others=others if scope.whole else [],
            database=self._database,
            scoped=bool(scope.namespace),
            now_us=hour.at_us,
        )

    def _values(
        self, context: RequestContext, concerns: Concerns, scope: _Scope, hour: Hour, present: Present
    ) -> dict[str, Any]:
        slots = [*hour.slots, hour.open]
        sums = total([hour.complete, hour.open], self._places_max)
        outages = self._outages(hour)
        listed = self._failures.number(scope.wanted)
        if scope.whole and _some_call_failed(sums):
            calls_listed = self._attention.call_failures.number(lambda _: True)
            listed = None if listed is None or calls_listed is None else listed + calls_listed
        link = band.query_of(scope.namespace)
        drawn = band.band(slots, scope.wanted, outages, hour.at_us, link)
        return {
            "verdict": self._verdict(concerns, scope, hour, present),
            "band": drawn,
            "stats": [(tone, number, link(filters)) for tone, number, filters in band.outcomes(drawn.sums)],
            "ahead": band.ahead(self._due(scope, hour), self._upcoming.until_us, hour.at_us, link),
            "ahead_known": self._upcoming.known,
            "ahead_link": link({"view": "pending", "due": "next-1h"}),
            "incidents": incidents(
                concerns,
                pauses=present.pauses if scope.whole else [],
                unowned=present.unowned if scope.whole else 0,
                outages=outages if scope.whole else [],
                slots=slots,
                started_us=present.started_us,
                failing=Failing(self._failing(hour, sums.failing), self._failures.left(slots)),
                calls=Failing(
                    self._calls_failing(hour, sums.calls_failing) if scope.whole else {},
                    self._attention.call_failures.left(slots),
                ),
                reports=Reports(self._waiting.reports, self._waiting.read_at_us) if scope.whole else None,
                reader=Reader(
                    scope.wanted,
                    context.principal.may(Role.ADMIN),
                    lambda name: context.principal.may(Role.WRITE, name),
                ),
                database=self._database,
                docs=DOCS_URL,
                link=link,
                now_us=hour.at_us,
            ),
            "calm": content.calm(
                failed=bool(drawn.sums.failed or drawn.sums.expired or (scope.whole and sums.calls.failed)),
                retried=bool(drawn.sums.retried or (scope.whole and sums.calls_failing)),
                left=listed,
                schedules=self._schedules.complete,
                monitors=self._attention.alarms.complete,
                paused=self._paused.known,
                whole=scope.whole,
                outages=self._reader.failure is None,
                brief=bool(outages),
                unread=concerns.unread or bool(present.silent or present.unowned),
            ),
            "listed": listed,
            "minutes": [(slot.begins_us, slot.counts(scope.wanted)) for slot in slots[-_MINUTES_SHOWN:]],
            "present": present if scope.whole else None,
            "calls_hour": sums.calls,
            "agent": (present.agent or sums.calls.any) and scope.whole,
        }

    @route("GET", "/ui/live/overview")
    async def live(self, context: RequestContext) -> Response:
        """Streams the verdict, and a version of the rest that changes when the page should fetch it again."""
        scope = self._scope(context)
        drawn_us, sent = 0, ""

        def update() -> dict[str, Any]:
            nonlocal drawn_us, sent
            hour, present = self._reader.hour(), self._nodes.present()
            concerns = self._concerns(scope)
            verdict = self._verdict(concerns, scope, hour, present)
            version = self._version(concerns, scope, hour, present)
            if version != sent and hour.at_us - drawn_us >= _REDRAWN_US:
                drawn_us, sent = hour.at_us, version
            return {"title": verdict.title, "text": verdict.text, "tone": verdict.tone, "version": sent}

        return self._site.streams.response(context, update, self._refresh)

    def _version(self, concerns: Concerns, scope: _Scope, hour: Hour, present: Present) -> str:
        """Changes with everything that the body of the page shows of the scope, and every minute. Clients see it."""
        counts, calls = hour.open.counts(scope.wanted), hour.open.calls
        latest = self._outages(hour)
        parts = (
            hour.open.begins_us // 1_000_000,
            counts.weight,
            len(hour.slots),
            present.in_flight if scope.whole else "",
            len(present.pauses),
            present.unowned if scope.whole else "",
            len(latest),
            sum(each.late for each in latest) if scope.whole else "",
            calls.submitted + calls.succeeded + calls.failed if scope.whole else "",
            len(self._due(scope, hour)),
            self._failures.number(scope.wanted),
            self._failures.settled_us // _MINUTE_US,
            " ".join(f"{each.name}:{each.waiting}" for each in concerns.destinations),
            len(concerns.flows),
            len(concerns.schedules),
            max((each.ended_at // 1_000_000 for each in concerns.schedules), default=0),
            len(concerns.alarms),
            max((each.since // 1_000_000 for each in concerns.alarms), default=0),
            len(concerns.unwatched),
            self._attention.retries.version(scope.wanted),
            self._attention.call_failures.number(lambda _: True) if scope.whole else "",
            self._attention.call_failures.settled_us // _MINUTE_US if scope.whole else "",
            self._attention.call_retries.version(lambda _: True) if scope.whole else "",
            len(concerns.waits),
            sum(each.number for each in concerns.waits),
            min((each.since for each in concerns.waits), default=0),
            concerns.unread,
            len(concerns.held),
            min((each.since for each in concerns.held), default=0),
            self._waiting.probed_at_us // 1_000_000 if scope.whole else "",
            " ".join(f"{each.name}:{each.waiting.number}" for each in concerns.namespaces),
        )
        return ".".join(map(str, parts))


def _some_call_failed(slot: Slot) -> bool:
    """Whether an attempt of a service call failed, or a call, of which the attempts may be unknown."""
    return bool(slot.calls_failing or slot.calls.failed)

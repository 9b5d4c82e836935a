"""Composes the pages from their parts."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from tocsin.keys import ApiKeys
from tocsin.model.setting import SettingInForce
from tocsin.ports.clock import ClockMover
from tocsin.statistics.counting import CallStatistics, Statistics
from tocsin.timers.monitors import Monitors
from tocsin.timers.schedules import Schedules
from tocsin.web.http.convert import RequestParser
from tocsin.web.http.monitors import MonitorRequests
from tocsin.web.http.parts import WebParts
from tocsin.web.pages.admin.admin import Administration
from tocsin.web.pages.admin.audit import AuditTrail
from tocsin.web.pages.admin.keys import Keys
from tocsin.web.pages.admin.namespaces import Namespaces
from tocsin.web.pages.admin.sessions import Sessions, SignIns
from tocsin.web.pages.admin.settings import SettingsTable
from tocsin.web.pages.admin.sign_in import SignInPart
from tocsin.web.pages.admin.single_sign_on import SingleSignOn
from tocsin.web.pages.admin.store import StorePage
from tocsin.web.pages.app import Ui
from tocsin.web.pages.assets import Assets
from tocsin.web.pages.calendars import CalendarsPage
from tocsin.web.pages.calls.agent import AgentSource, Gate, Tenants
from tocsin.web.pages.calls.bulk import CallBulk
from tocsin.web.pages.calls.detail import CallActions, CallDetail
from tocsin.web.pages.calls.labels import TenantLabels
from tocsin.web.pages.calls.listing import CallList
from tocsin.web.pages.calls.submitting import CallSubmission
from tocsin.web.pages.counts import Counts
from tocsin.web.pages.credentials import CredentialsPage
from tocsin.web.pages.destinations import DestinationsPage
from tocsin.web.pages.failures.calls import CallFailurePages
from tocsin.web.pages.failures.failures import FailurePages
from tocsin.web.pages.finding import Finder
from tocsin.web.pages.flows import FlowsPage
from tocsin.web.pages.inbox import InboxPage
from tocsin.web.pages.jobs import Jobs
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.live import Streams
from tocsin.web.pages.monitors.editing import MonitorEditing
from tocsin.web.pages.monitors.monitors import MonitorPages
from tocsin.web.pages.outages import Outages
from tocsin.web.pages.overview.alarms import Alarms
from tocsin.web.pages.overview.nodes import Nodes
from tocsin.web.pages.overview.open_failures import OpenCallFailures, OpenTimerFailures
from tocsin.web.pages.overview.overview import Attention, Overview
from tocsin.web.pages.overview.paused import Paused, PausedSchedules
from tocsin.web.pages.overview.retries import CallRetries, TimerRetries
from tocsin.web.pages.overview.upcoming import Upcoming
from tocsin.web.pages.overview.waiting import HeldSchedules, Waiting
from tocsin.web.pages.overview.welcome import Welcome
from tocsin.web.pages.pages import Pages
from tocsin.web.pages.reference import Reference
from tocsin.web.pages.schedules.actions import ScheduleActions
from tocsin.web.pages.schedules.day import ScheduleDay
from tocsin.web.pages.schedules.detail import ScheduleDetail
from tocsin.web.pages.schedules.editing import ScheduleEditing
from tocsin.web.pages.schedules.listing import ScheduleList
from tocsin.web.pages.schedules.occurrence import ScheduleOccurrence
from tocsin.web.pages.shell import Shell
from tocsin.web.pages.site import Site
from tocsin.web.pages.timers.actions import TimerActions
from tocsin.web.pages.timers.bulk import BulkActions
from tocsin.web.pages.timers.detail import TimerDetail
from tocsin.web.pages.timers.editing import TimerEditing
from tocsin.web.pages.timers.export import TimerExport
from tocsin.web.pages.timers.listing import TimerList

if TYPE_CHECKING:
    from tocsin.sso.provider import Provider


def compose(
    parts: WebParts,
    *,
    sign_ins: SignIns,
    statistics: Statistics,
    call_statistics: CallStatistics,
    agent: AgentSource,
    api_keys: ApiKeys,
    operations: Collection[str],
    settings: Sequence[SettingInForce],
    own_url: str | None,
    limits: UiLimits,
    database: str,
    agent_database: str | None,
    clock_mover: ClockMover | None,
    provider: Provider | None,
) -> Ui:
    """The application. `agent` returns the service calls for each page that shows some; `operations` are the names of
    all to which a key can be limited; `database` is the store's name and place, `agent_database` that of service calls if
    that is another one; `clock_mover` moves the clock, if something does; `provider` is the identity provider, if there is
    one."""
    service, clock, keys, assets = parts.service, parts.clock, parts.keys, Assets()
    sessions = Sessions(keys, sign_ins, limits, time.time)
    nodes = Nodes(service)
    schedules = Schedules(service)
    attention = Attention(
        paused=Paused(service, clock),
        schedules=PausedSchedules(schedules),
        alarms=Alarms(Monitors(service), clock),
        failures=OpenTimerFailures(service, clock),
        retries=TimerRetries(service, clock),
        call_failures=OpenCallFailures(service, agent, clock),
        call_retries=CallRetries(service, agent, clock),
        waiting=Waiting(service, clock),
        held=HeldSchedules(service),
    )
    upcoming = Upcoming(service, clock)
    outages = Outages(service, nodes, database, agent_database)
    pages = Pages(
        assets,
        keys=keys,
        policy_of=service.namespaces.retry_policy,
        is_paused=service.namespaces.is_paused,
        issuer=None if provider is None else provider.issuer,
        inbox=parts.inbox is not None,
    )
    site = Site(
        service=service,
        schedules=schedules,
        jobs=parts.jobs,
        parser=RequestParser(parts.rules),
        rules=parts.rules,
        pages=pages,
        statistics=statistics,
        call_statistics=call_statistics,
        streams=Streams(limits, clock_mover, outages.present, pages.outage),
        counts=Counts(),
        gate=Gate(agent, pages, outages, parts.relay),
        tenants=Tenants(limits),
        keys=keys,
        audit=parts.audit,
        labels=TenantLabels(parts.records, limits.tenant_labels_max),
        outages=outages,
        limits=limits,
    )
    single = SingleSignOn(site, sessions, provider, parts.auth_failures)
    welcome = Welcome(site, own_url=own_url, now_us=clock.now_us)
    timers, timer, schedule, call = TimerList(site), TimerDetail(site), ScheduleDetail(site), CallDetail(site)
    calls, store = CallList(site), StorePage(site, parts.statistics, database)
    monitors = MonitorRequests(Monitors(service), site.parser, site.audit, parts.base_url, parts.hosts)
    monitor_pages = MonitorPages(site, monitors)
    inbox_pages = [] if parts.inbox is None else [InboxPage(site, parts.inbox)]
    families = (
        Overview(site, parts.statistics, nodes, attention, upcoming, welcome, database),
        welcome,
        SignInPart(site, sessions, parts.auth_failures, single),
        single,
        timers,
        TimerExport(site, timers),
        TimerEditing(site),
        TimerActions(site, timer),
        BulkActions(site, timers),
        ScheduleList(site),
        ScheduleDay(site),
        ScheduleEditing(site),
        ScheduleActions(site, schedule),
        FailurePages(site),
        CallFailurePages(site),
        DestinationsPage(site),
        FlowsPage(site),
        CalendarsPage(site),
        CredentialsPage(site),
        # Before the pages, whose patterns match any path under /monitors.
        MonitorEditing(site, monitors, monitor_pages),
        monitor_pages,
        *inbox_pages,
        Jobs(site),
        Shell(site),
        Finder(site),
        Administration(site),
        store,
        Namespaces(site),
        Keys(site, api_keys, operations),
        AuditTrail(site),
        SettingsTable(site, settings),
        Reference(site),
        calls,
        CallSubmission(site),
        CallActions(site, call),
        CallBulk(site, calls),
        # Last, because their patterns match any path under /calls, /schedules and /timers.
        call,
        ScheduleOccurrence(site, schedule),
        schedule,
        timer,
    )
    return Ui(
        [route for family in families for route in family.routes()],
        site,
        parts,
        assets=assets,
        sessions=sessions,
        welcome=welcome,
        closing=[
            nodes.close,
            *(part.close for part in attention),
            upcoming.close,
            site.counts.close,
            store.close,
            *(page.close for page in inbox_pages),
        ],
    )

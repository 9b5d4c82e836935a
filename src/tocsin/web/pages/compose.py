"""Composes the pages from their parts."""

from __future__ import annotations

import time

from tocsin.model.validation import InputRules
from tocsin.ports.audit import AuditLog, NoAudit
from tocsin.ports.clock import Clock
from tocsin.timers.service import TimerService
from tocsin.web.http.access import Keyring
from tocsin.web.http.auth_failures import AuthFailures
from tocsin.web.http.convert import RequestParser
from tocsin.web.http.hosts import Hosts
from tocsin.web.http.proxies import Proxies
from tocsin.web.pages.admin import AdminHandlers
from tocsin.web.pages.app import Ui
from tocsin.web.pages.assets import Assets
from tocsin.web.pages.calls.actions import CallActionHandlers
from tocsin.web.pages.calls.agent import AgentSource, Gate, Relay
from tocsin.web.pages.calls.detail import CallDetailHandlers
from tocsin.web.pages.calls.listing import CallListHandlers
from tocsin.web.pages.calls.statistics import CallStatistics
from tocsin.web.pages.calls.submitting import CallFormHandlers
from tocsin.web.pages.calls.tenants import Tenants
from tocsin.web.pages.limits import UiLimits
from tocsin.web.pages.live import Streams
from tocsin.web.pages.overview.cluster_statistics import ClusterStatistics
from tocsin.web.pages.overview.overview import OverviewHandlers
from tocsin.web.pages.overview.paused import Paused
from tocsin.web.pages.overview.statistics import Statistics
from tocsin.web.pages.pages import Pages
from tocsin.web.pages.sessions import Sessions, SignIns
from tocsin.web.pages.sign_in import SignInHandlers
from tocsin.web.pages.timers.actions import ActionHandlers
from tocsin.web.pages.timers.bulk_cancel import CancelHandlers
from tocsin.web.pages.timers.bulk_run import RunHandlers
from tocsin.web.pages.timers.detail import DetailHandlers
from tocsin.web.pages.timers.editing import EditHandlers
from tocsin.web.pages.timers.export import ExportHandlers
from tocsin.web.pages.timers.listing import ListHandlers
from tocsin.web.pages.welcome import WelcomeHandlers


def compose(
    service: TimerService,
    *,
    rules: InputRules,
    clock: Clock,
    keys: Keyring,
    sign_ins: SignIns,
    auth_failures: AuthFailures | None = None,
    proxies: Proxies | None = None,
    audit: AuditLog | None = None,
    statistics: Statistics,
    call_statistics: CallStatistics,
    agent: AgentSource,
    hosts: Hosts,
    relay: Relay | None = None,
    own_url: str | None = None,
    limits: UiLimits | None = None,
    assets: Assets | None = None,
) -> Ui:
    """The application. `hosts` are the host names that it accepts; `agent` returns the service calls for each page that shows
    some; `relay` sends requests that need the agent to the node that runs it."""
    limits = limits or UiLimits()
    audit = audit or NoAudit()
    assets = assets or Assets()
    parser = RequestParser(rules)
    sessions = Sessions(keys, sign_ins, limits, time.time)
    streams = Streams(limits)
    cluster_statistics = ClusterStatistics(statistics, service, clock, limits)
    paused = Paused(service, clock)
    pages = Pages(assets, keys=keys, policy_of=service.retry_policy)
    lists = ListHandlers(service, parser, pages, statistics, streams, limits)
    detail = DetailHandlers(service, pages, statistics, id_chars_max=rules.limits.id_chars_max)
    gate, tenants = Gate(agent, pages, relay), Tenants(hosts, limits)
    call_detail = CallDetailHandlers(gate, pages, call_statistics, limits)
    welcome = WelcomeHandlers(service, parser, rules, pages, own_url=own_url, now_us=clock.now_us)
    parts = (
        OverviewHandlers(service, pages, cluster_statistics, streams, agent, limits, paused, welcome),
        welcome,
        SignInHandlers(pages, sessions, auth_failures or AuthFailures(), audit),
        lists,
        ExportHandlers(service, lists, limits),
        EditHandlers(service, parser, pages, lists, keys=keys, id_chars_max=rules.limits.id_chars_max),
        ActionHandlers(service, parser, pages, detail, limits, id_chars_max=rules.limits.id_chars_max),
        CancelHandlers(service, pages, lists, limits),
        RunHandlers(service, parser, pages, lists, limits, id_chars_max=rules.limits.id_chars_max),
        AdminHandlers(service, parser, pages, lists, audit),
        CallListHandlers(gate, pages, tenants, call_statistics, streams, limits),
        CallFormHandlers(gate, pages, tenants, keys=keys),
        CallActionHandlers(gate, call_detail),
        call_detail,
        # Last, because its pattern matches every path under /timers.
        detail,
    )
    return Ui(
        [route for part in parts for route in part.routes()],
        pages=pages,
        assets=assets,
        sessions=sessions,
        hosts=hosts,
        proxies=proxies or Proxies(),
        statistics=statistics,
        cluster_statistics=cluster_statistics,
        paused=paused,
        welcome=welcome,
        streams=streams,
        clock=clock,
        limits=limits,
    )

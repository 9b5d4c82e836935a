"""Puts the pages together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from tocsin.contract.access import KeyRing
from tocsin.contract.attempts import Attempts
from tocsin.contract.convert import Intake
from tocsin.contract.hosts import Hosts
from tocsin.contract.proxies import Proxies
from tocsin.model.validation import InputRules
from tocsin.ports.audit import AuditLog, NoAudit
from tocsin.ports.clock import Clock
from tocsin.service import TimerService
from tocsin.ui.actions import ActionHandlers
from tocsin.ui.app import Ui
from tocsin.ui.assets import Assets
from tocsin.ui.calls.actions import CallActionHandlers
from tocsin.ui.calls.agent import AgentSource, Gate, Relay
from tocsin.ui.calls.detail import CallDetailHandlers
from tocsin.ui.calls.figures import CallFigures
from tocsin.ui.calls.listing import CallListHandlers
from tocsin.ui.calls.sending import CallFormHandlers
from tocsin.ui.calls.tenants import Tenants
from tocsin.ui.cancels import CancelHandlers
from tocsin.ui.detail import DetailHandlers
from tocsin.ui.editing import EditHandlers
from tocsin.ui.entry import EntryHandlers
from tocsin.ui.export import ExportHandlers
from tocsin.ui.figures import Figures
from tocsin.ui.gathered import Gathered
from tocsin.ui.limits import UiLimits
from tocsin.ui.listing import ListHandlers
from tocsin.ui.live import Streams
from tocsin.ui.operators import OperatorPages
from tocsin.ui.overview import OverviewHandlers
from tocsin.ui.pages import Pages
from tocsin.ui.paused import Paused
from tocsin.ui.runs import RunHandlers
from tocsin.ui.sessions import Sessions, SignIns
from tocsin.ui.welcome import WelcomeHandlers


def compose(
    service: TimerService,
    *,
    rules: InputRules,
    clock: Clock,
    keys: KeyRing,
    sign_ins: SignIns,
    attempts: Attempts | None = None,
    proxies: Proxies | None = None,
    audit: AuditLog | None = None,
    figures: Figures,
    call_figures: CallFigures,
    agent: AgentSource,
    hosts: Hosts,
    relay: Relay | None = None,
    own_url: str | None = None,
    limits: UiLimits | None = None,
    assets: Assets | None = None,
) -> Ui:
    """The application. `hosts` are the names that it answers under, `agent` is asked for the service calls whenever a page
    shows some. `relay` brings what this node can't answer without the agent to the node that has it."""
    limits = limits or UiLimits()
    audit = audit or NoAudit()
    assets = assets or Assets()
    intake = Intake(rules)
    sessions = Sessions(keys, sign_ins, limits, time.time)
    streams = Streams(limits)
    gathered = Gathered(figures, service, clock, limits)
    paused = Paused(service, clock)
    pages = Pages(assets, keys=keys, policy_of=service.retry_policy)
    lists = ListHandlers(service, intake, pages, figures, streams, limits)
    detail = DetailHandlers(service, pages, figures, id_chars_max=rules.limits.id_chars_max)
    gate, tenants = Gate(agent, pages, relay), Tenants(hosts, limits)
    call_detail = CallDetailHandlers(gate, pages, call_figures, limits)
    welcome = WelcomeHandlers(service, intake, rules, pages, own_url=own_url, now_us=clock.now_us)
    parts = (
        OverviewHandlers(service, pages, gathered, streams, agent, limits, paused, welcome),
        welcome,
        EntryHandlers(pages, sessions, attempts or Attempts(), audit),
        lists,
        ExportHandlers(service, lists, limits),
        EditHandlers(service, intake, pages, lists, keys=keys, id_chars_max=rules.limits.id_chars_max),
        ActionHandlers(service, intake, pages, detail, limits, id_chars_max=rules.limits.id_chars_max),
        CancelHandlers(service, pages, lists, limits),
        RunHandlers(service, intake, pages, lists, limits, id_chars_max=rules.limits.id_chars_max),
        OperatorPages(service, intake, pages, lists, audit),
        CallListHandlers(gate, pages, tenants, call_figures, streams, limits),
        CallFormHandlers(gate, pages, tenants, keys=keys),
        CallActionHandlers(gate, call_detail),
        call_detail,
        # Its pattern takes whatever is left under /timers.
        detail,
    )
    return Ui(
        [route for part in parts for route in part.routes()],
        pages=pages,
        assets=assets,
        sessions=sessions,
        hosts=hosts,
        proxies=proxies or Proxies(),
        figures=figures,
        gathered=gathered,
        paused=paused,
        welcome=welcome,
        streams=streams,
        clock=clock,
        limits=limits,
    )


def figures(limits: UiLimits, clock: Clock, gauges: Callable[[], Mapping[str, float]]) -> Figures:
    """The observer that the pages' charts are made from."""
    return Figures(limits, clock.now_us(), gauges)


def call_figures(figures: Figures, limits: UiLimits) -> CallFigures:
    """The same of the agent's events."""
    return CallFigures(figures, limits)

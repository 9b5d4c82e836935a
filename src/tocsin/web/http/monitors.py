"""Converts between the wire structs of monitors and the model, and does what requests about them ask for, with their entries
in the audit trail."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import UNSET, UnsetType

from tocsin.model.access import ApiKey
from tocsin.model.audit import AuditAction
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.hooks import NO_HOOKS
from tocsin.model.instants import format_duration, format_instant, parse_duration
from tocsin.model.monitor import (
    BODY_BYTES_MAX,
    EXIT_CODE_MAX,
    GRACE_US_DEFAULT,
    GRACE_US_MAX,
    GRACE_US_MIN,
    REPEAT_US_MAX,
    REPEAT_US_MIN,
    MonitorDefinition,
    MonitorStatus,
    Ping,
    PingEvent,
)
from tocsin.model.occurrences import check
from tocsin.model.period import Period
from tocsin.model.timer import Timer
from tocsin.ports.audit import Actor, AuditLog
from tocsin.timers.monitors import MonitorListRequest, Monitors, MonitorView
from tocsin.web.http import monitor_wire as wire
from tocsin.web.http.access import listed_in
from tocsin.web.http.constraints import ROWS_DEFAULT, bad_fields, refuse_bad_fields
from tocsin.web.http.convert import RequestParser, set_hooks
from tocsin.web.http.hosts import Hosts, is_https, url_of
from tocsin.web.http.instants import optional_instant, read
from tocsin.web.http.optional import or_default, or_none

#: Where pings are sent, behind the address of the API.
PING_PATH = "/ping/"


class MonitorRequests:
    """Every method raises InvalidInput with all bad fields of the request, and the errors of `Monitors`. `base_url`: where
    clients reach the API; None: where the request came to, as `hosts` knows it."""

    def __init__(
        self, monitors: Monitors, parser: RequestParser, audit: AuditLog, base_url: str | None, hosts: Hosts
    ) -> None:
        self.monitors = monitors
        self._parser, self._audit, self._base_url, self._hosts = parser, audit, base_url, hosts

    async def put(self, sent: wire.PutMonitor, now_us: int, actor: Actor) -> MonitorView:
        """Creates the monitor, or replaces its definition."""
        timer, definition = monitor_in(sent, self._parser, now_us)
        expected = or_none(sent.expected_version)
        dry_run = sent.dry_run is True
        view = await self.monitors.put(timer, definition, expected_version=expected, dry_run=dry_run)
        if not view.unchanged and not dry_run:
            await self._record(AuditAction.MONITOR_CHANGED, actor, sent)
        return view

    async def change(self, action: AuditAction, sent: wire.MonitorName, actor: Actor) -> MonitorView:
        """Pauses or resumes the monitor, or replaces its token."""
        name = self.name(sent)
        does = {
            AuditAction.MONITOR_PAUSED: self.monitors.pause,
            AuditAction.MONITOR_RESUMED: self.monitors.resume,
            AuditAction.MONITOR_ROTATED: self.monitors.rotate,
        }
        view = await does[action](*name)
        if not view.unchanged:
            await self._record(action, actor, sent)
        return view

    async def delete(self, sent: wire.DeleteMonitor, actor: Actor) -> None:
        """Removes the monitor."""
        expected = or_none(sent.expected_version)
        await self.monitors.delete(*self.name(sent), expected)
        await self._record(AuditAction.MONITOR_DELETED, actor, sent)

    def name(self, sent: wire.MonitorName) -> tuple[str, str]:
        """The monitor's namespace and id."""
        refuse_bad_fields(sent, self._parser.rules)
        return sent.namespace, sent.id

    def ping(self, sent: wire.PingMonitor) -> Ping:
        """The report that is sent."""
        self.name(sent)
        event = PingEvent.SUCCESS if sent.event is UNSET else sent.event
        # A job that begins has none yet.
        code = None if sent.exit_code is UNSET or event is PingEvent.START else sent.exit_code
        return Ping(
            PingEvent.FAIL if code else event,
            exit_code=code,
            body=None if sent.body is UNSET else kept(sent.body.encode()),
        )

    def list_request(self, sent: wire.ListMonitors, key: ApiKey | None) -> MonitorListRequest:
        """The list that is requested with the key."""
        refuse_bad_fields(sent, self._parser.rules)
        wanted = [] if sent.state is UNSET else [sent.state] if isinstance(sent.state, str) else sent.state
        return MonitorListRequest(
            listed_in(key, sent.namespace),
            frozenset(map(MonitorStatus, wanted)),
            tag=or_none(sent.tag),
            managed_by=or_none(sent.managed_by),
            id_prefix="" if sent.id_prefix is UNSET else sent.id_prefix,
            limit=or_default(sent.limit, ROWS_DEFAULT),
            cursor=or_none(sent.cursor),
        )

    def history_request(self, sent: wire.MonitorHistory) -> tuple[str, str, int, str | None]:
        """The monitor's namespace and id, and the limit and cursor of the page of its periods."""
        limit = or_default(sent.limit, ROWS_DEFAULT)
        return *self.name(sent), limit, or_none(sent.cursor)

    def ping_url(self, token: str, headers: Mapping[bytes, bytes]) -> str:
        """The URL of a token. https where a proxy's header or `ui.origins` has it so."""
        base = self._base_url
        if base is None:
            host = headers.get(b"host", b"").decode("latin-1")
            base = url_of(host, secure=self._hosts.secure(host) or is_https(headers.get(b"x-forwarded-proto")))
        return f"{base.rstrip('/')}{PING_PATH}{token}"

    async def _record(self, action: AuditAction, actor: Actor, sent: wire.MonitorName | wire.PutMonitor) -> None:
        await self._audit.write(action, actor, sent.namespace, {"monitor": sent.id})


def monitor_in(sent: wire.PutMonitor, parser: RequestParser, now_us: int) -> tuple[Timer, MonitorDefinition]:
    """The monitor that is put. Raises InvalidInput with all bad fields."""
    rules = parser.rules
    errors = bad_fields(sent, rules)
    rhythms = {"cron": sent.cron, "every": sent.every, "schedule": sent.schedule}
    given = [name for name, value in rhythms.items() if value is not UNSET]
    if not given:
        errors.append(FieldError("cron", "is missing; send cron, every or schedule"))
    errors += [FieldError(name, f"conflicts with {given[0]}; send only one of them") for name in given[1:]]
    found = len(errors)
    every_us = None if sent.every is UNSET else read(parse_duration, "every", sent.every, errors)
    grace_us = _duration("grace", sent.grace, GRACE_US_MIN, GRACE_US_MAX, errors)
    repeat_us = _duration("repeat", sent.repeat, REPEAT_US_MIN, REPEAT_US_MAX, errors)
    definition = MonitorDefinition(
        cron=or_none(sent.cron),
        time_zone="UTC" if sent.time_zone is UNSET or sent.cron is UNSET else sent.time_zone,
        every_us=every_us,
        grace_us=GRACE_US_DEFAULT if grace_us is None else grace_us,
        repeat_us=repeat_us,
        managed_by=or_none(sent.managed_by),
        schedule=or_none(sent.schedule),
    )
    if len(errors) == found and len(given) == 1 and definition.schedule is None:
        errors += check(definition.rule, now_us)
    if sent.tags is not UNSET:
        errors += rules.new_tags(sent.tags, "tags")
    hooks = parser.hooks(sent, errors)
    if errors:
        raise InvalidInput(*errors)
    timer = Timer(
        sent.namespace,
        sent.id,
        now_us,
        "",
        now_us,
        now_us,
        tags=() if sent.tags is UNSET else tuple(sent.tags),
        description=or_none(sent.description),
        hooks=None if hooks is UNSET else NO_HOOKS.changed(hooks),
    )
    return timer, definition


def _duration(name: str, text: str | UnsetType, least: int, most: int, errors: list[FieldError]) -> int | None:
    if text is UNSET:
        return None
    found = len(errors)
    duration_us = read(parse_duration, name, text, errors)
    if len(errors) == found and not least <= duration_us <= most:
        reason = f"must be between {format_duration(least)} and {format_duration(most)}"
        errors.append(FieldError(name, reason))
    return duration_us


def ping_of(event: str | None, body: bytes) -> Ping | None:
    """The report of a ping to a URL that ends with the event: start, fail, or an exit code; None for any other end."""
    text = kept(body) if body else None
    if event is None:
        return Ping(PingEvent.SUCCESS, body=text)
    if event in (PingEvent.START, PingEvent.FAIL):
        return Ping(PingEvent(event), body=text)
    if event.isascii() and event.isdecimal() and len(event) <= 3 and int(event) <= EXIT_CODE_MAX:
        return Ping(PingEvent.FAIL if int(event) else PingEvent.SUCCESS, exit_code=int(event), body=text)
    return None


def kept(body: bytes) -> str:
    """What is kept of a body: its end, which has what went wrong, as text."""
    text = body[-BODY_BYTES_MAX:].decode(errors="replace").replace("\0", "�")
    if len(body) > BODY_BYTES_MAX:
        text = text.lstrip("�")
    # What stands for bytes that are no text takes more of them.
    return text.encode()[-BODY_BYTES_MAX:].decode(errors="ignore")


def monitor_answer(view: MonitorView, now_us: int) -> wire.Monitor:
    """A monitor as clients see it at an instant."""
    timer, definition, state = view.timer, view.monitor.definition, view.monitor.state
    answer = wire.Monitor(
        namespace=timer.namespace,
        id=timer.id,
        grace=format_duration(definition.grace_us),
        tags=list(timer.tags),
        state=state.status,
        since=format_instant(state.since),
        running=state.started is not None,
        last_ping_at=optional_instant(state.last_ping),
        expected_at=optional_instant(state.expected),
        deadline=optional_instant(state.deadline),
        unwatched_since=optional_instant(view.unwatched_since(now_us)),
        version=state.version,
        created_at=format_instant(timer.created_at),
        updated_at=format_instant(state.changed_at),
    )
    if definition.cron is not None:
        answer.cron, answer.time_zone = definition.cron, definition.time_zone
    if definition.every_us is not None:
        answer.every = format_duration(definition.every_us)
    if definition.schedule is not None:
        answer.schedule = definition.schedule
    if definition.repeat_us is not None:
        answer.repeat = format_duration(definition.repeat_us)
    if definition.managed_by is not None:
        answer.managed_by = definition.managed_by
    if timer.description is not None:
        answer.description = timer.description
    set_hooks(answer, timer.hooks)
    return answer


def period_answer(period: Period) -> wire.MonitorPeriod:
    """A period as clients see it."""
    answer = wire.MonitorPeriod(
        expected_at=format_instant(period.expected_at),
        deadline=format_instant(period.deadline),
        state=period.state,
        started_at=optional_instant(period.started_at),
        ended_at=optional_instant(period.ended_at),
    )
    if period.started_at is not None and period.ended_at is not None:
        answer.duration_ms = (period.ended_at - period.started_at) / 1_000
    for name in ("exit_code", "body", "note"):
        value = getattr(period, name)
        if value is not None:
            setattr(answer, name, value)
    if period.periods > 1:
        answer.periods = period.periods
    return answer

"""The operations on monitors, and the pings of their jobs."""

from __future__ import annotations

from functools import partial

from msgspec import UNSET

from tocsin.model.access import Role
from tocsin.model.audit import AuditAction
from tocsin.model.errors import MonitorNotFound
from tocsin.model.monitor import is_token
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest, AsgiRequest
from tocsin.web.http import monitor_wire as wire
from tocsin.web.http.access import AuthFailures
from tocsin.web.http.errors import Response
from tocsin.web.http.monitors import MonitorRequests, monitor_answer, period_answer, ping_of

_change = partial(Operation, role=Role.WRITE, reach=Reach.NAMESPACE)
_read = partial(Operation, role=Role.READ, reach=Reach.NAMESPACE)
_TAKEN = b"OK\n"
_TAKEN_HEADERS = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", b"%d" % len(_TAKEN)),
    (b"cache-control", b"no-store"),
]


class MonitorHandlers:
    """Handles put, get, list, pause, resume, rotate, delete, ping and history."""

    def __init__(self, requests: MonitorRequests) -> None:
        self._requests, self._monitors = requests, requests.monitors

    @_change("putMonitor", "/api/v1/monitors/put")
    async def put(self, request: ApiRequest, sent: wire.PutMonitor) -> wire.MonitorPut:
        """Creates the monitor, or replaces its definition, durably. The response that creates it has the URL for its job's
        pings, which is never shown again; that of a schedule has none. A monitor that exists keeps its state and its URL; if
        nothing changes, nothing is written. A new monitor is not late before its first report, or of a schedule for what was
        before."""
        view = await self._requests.put(sent, request.now_us, request.actor)
        if view.token is None:
            return wire.MonitorPut(monitor_answer(view, request.now_us), created=view.created)
        request.forbid_storing()
        url = self._requests.ping_url(view.token, request.headers)
        return wire.MonitorPut(monitor_answer(view, request.now_us), created=True, ping_url=url)

    @_read("getMonitor", "/api/v1/monitors/get")
    async def get(self, request: ApiRequest, sent: wire.MonitorName) -> wire.MonitorAnswer:
        """The monitor. `lastPingAt` may lack the pings of the last few seconds."""
        return wire.MonitorAnswer(monitor_answer(await self._monitors.get(*self._requests.name(sent)), request.now_us))

    @_read("listMonitors", "/api/v1/monitors/list")
    async def list(self, request: ApiRequest, sent: wire.ListMonitors) -> wire.MonitorPage:
        """By namespace and id. Paginated: send nextCursor back as cursor until a response has none. Even an empty page may
        have one, if few monitors match. The namespace * lists the monitors of all namespaces that the API key covers."""
        found, cursor = await self._monitors.list(self._requests.list_request(sent, request.key))
        return wire.MonitorPage(
            [monitor_answer(view, request.now_us) for view in found], UNSET if cursor is None else cursor
        )

    @_change("pauseMonitor", "/api/v1/monitors/pause")
    async def pause(self, request: ApiRequest, sent: wire.MonitorName) -> wire.MonitorAnswer:
        """Expects nothing any more until it is resumed. Pings are taken, and change nothing."""
        return await self._changed(AuditAction.MONITOR_PAUSED, request, sent)

    @_change("resumeMonitor", "/api/v1/monitors/resume")
    async def resume(self, request: ApiRequest, sent: wire.MonitorName) -> wire.MonitorAnswer:
        """Expects reports again, from the next instant on."""
        return await self._changed(AuditAction.MONITOR_RESUMED, request, sent)

    @_change("rotateMonitor", "/api/v1/monitors/rotate")
    async def rotate(self, request: ApiRequest, sent: wire.MonitorName) -> wire.MonitorRotated:
        """Gives the monitor another ping URL. Pings to the former one are refused from the response on."""
        view = await self._requests.change(AuditAction.MONITOR_ROTATED, sent, request.actor)
        assert view.token is not None
        request.forbid_storing()
        return wire.MonitorRotated(
            monitor_answer(view, request.now_us), self._requests.ping_url(view.token, request.headers)
        )

    @_change("deleteMonitor", "/api/v1/monitors/delete", status=204)
    async def delete(self, request: ApiRequest, sent: wire.DeleteMonitor) -> None:
        """Removes the monitor with its history. Its ping URL is unknown from the response on."""
        await self._requests.delete(sent, request.actor)

    @_change("pingMonitor", "/api/v1/monitors/ping")
    async def ping(self, request: ApiRequest, sent: wire.PingMonitor) -> wire.MonitorAnswer:
        """Reports that the monitor's job has begun, succeeded or failed, with an API key instead of the ping URL. It changes
        nothing where the monitor watches a schedule."""
        ping = self._requests.ping(sent)
        return wire.MonitorAnswer(
            monitor_answer(await self._monitors.ping(sent.namespace, sent.id, ping), request.now_us)
        )

    @_read("monitorHistory", "/api/v1/monitors/history")
    async def history(self, request: ApiRequest, sent: wire.MonitorHistory) -> wire.MonitorPeriods:
        """The monitor's periods, newest first. The first page of a late monitor begins with what is unreported so far.
        Paginated: send nextCursor back as cursor until a response has none."""
        found, cursor = await self._monitors.history(*self._requests.history_request(sent))
        return wire.MonitorPeriods(list(map(period_answer, found)), UNSET if cursor is None else cursor)

    async def _changed(self, action: AuditAction, request: ApiRequest, sent: wire.MonitorName) -> wire.MonitorAnswer:
        return wire.MonitorAnswer(
            monitor_answer(await self._requests.change(action, sent, request.actor), request.now_us)
        )


_ping = partial(Operation, any_query=True, before_body="check")


class PingHandlers:
    """Takes the pings of jobs, which have no key but the token in their URL. Unknown tokens count like failed keys.
    Beyond the limit of an address, only tokens that were good before are taken from it, and no others are looked for."""

    def __init__(self, requests: MonitorRequests, failures: AuthFailures) -> None:
        self._monitors, self._failures = requests.monitors, failures

    @_ping("ping", "/ping/{token}", method="GET")
    async def ping(self, request: AsgiRequest) -> Response:
        """The monitor's job has succeeded. The response comes when that is durable; a ping that only repeats what is known
        may be written a few seconds later."""
        return await self._take(request)

    @_ping("pingWithBody", "/ping/{token}", any_body=True)
    async def ping_with_body(self, request: AsgiRequest) -> Response:
        """The same with a body of any type, such as a log, of which the end is kept with the period."""
        return await self._take(request)

    @_ping("pingEvent", "/ping/{token}/{event}", method="GET")
    async def ping_event(self, request: AsgiRequest) -> Response:
        """The monitor's job has begun (`start`), has failed (`fail`), or has ended with an exit code (0 to 255), of which 0
        is a success."""
        return await self._take(request)

    @_ping("pingEventWithBody", "/ping/{token}/{event}", any_body=True)
    async def ping_event_with_body(self, request: AsgiRequest) -> Response:
        """The same with a body of any type, of which the end is kept with the period."""
        return await self._take(request)

    def taken(self, token: bytes) -> Response | None:
        """The response to a ping without event and body, if this node has taken it in memory; None: it took nothing."""
        if not self._monitors.take_further(token.decode("latin-1")):
            return None
        return Response(200, _TAKEN_HEADERS, _TAKEN)

    def check(self, request: AsgiRequest) -> None:
        """Raises MonitorNotFound for a path that is no ping, and TooManyFailures, before anything is spent on the request."""
        token = request.parameters["token"]
        if ping_of(request.parameters.get("event"), b"") is None or not is_token(token):
            raise self._unknown(request)
        if not self._monitors.remembers(token):
            self._failures.check(request.address)

    async def _take(self, request: AsgiRequest) -> Response:
        ping = ping_of(request.parameters.get("event"), request.body)
        assert ping is not None, "check has refused it"
        # Of a large body a small part is kept, also while the ping waits.
        request.body = b""
        try:
            await self._monitors.ping_by_token(request.parameters["token"], ping)
        except MonitorNotFound:
            raise self._unknown(request) from None
        return Response(200, _TAKEN_HEADERS, _TAKEN)

    def _unknown(self, request: AsgiRequest) -> MonitorNotFound:
        """What is answered to an unknown ping, which counts. Raises TooManyFailures."""
        self._failures.failure(request.address, "unknown_token", "ping")
        return MonitorNotFound("no such monitor")

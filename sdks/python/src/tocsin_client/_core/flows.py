"""Calls that are more than one request: creates with their keys, deletes, waits, pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from tocsin_client._core.answers import check_empty, read_answer
from tocsin_client._core.comparison import has_fields
from tocsin_client._core.ids import new_key, uuid7
from tocsin_client._core.retries import is_repeated
from tocsin_client._core.routing import Place
from tocsin_client._core.session import Call, Options, Session, Tries
from tocsin_client._core.steps import Reply, Sleep, Steps
from tocsin_client._error_bases import ApiError, Conflict, NotFound, TransportError, WaitTimeout
from tocsin_client._generated.models import (
    CalendarId,
    CreateTimer,
    DeleteCalendar,
    DeleteFlow,
    DeleteMonitor,
    DeleteSchedule,
    FlowName,
    MonitorName,
    RevokeKey,
    Schedule,
    ScheduleName,
    ServiceCall,
    SubmitServiceCall,
    SubmittedServiceCall,
    Timer,
    TimerName,
    UpdateSchedule,
    UpdateTimer,
)
from tocsin_client._generated.operations import OPERATIONS
from tocsin_client._values import UNSET, Duration, JsonValue, parse_instant, seconds_of

Answer = TypeVar("Answer")

#: Declares that no earlier try can have been executed: the server needs no look-up.
FIRST_TRY = {"tocsin-first-try": "1"}
WAIT_POLL_FIRST_S = 0.1
WAIT_POLL_S_MAX = 2.0
#: What the last read has, at the end of the time.
WAIT_READ_S_MIN = 2.0
#: Before the instant: what is awaited can be canceled or changed meanwhile, and the server's clock can differ.
WAIT_SLEEP_S_MAX = 30.0
#: The same with a clock that a test may move meanwhile.
WAIT_MOVABLE_SLEEP_S_MAX = 1.0
FINISHED_CALLS = frozenset({"Succeeded", "Failed"})


def ask(
    session: Session,
    operation: str,
    read: Callable[[Mapping[str, Any]], Answer],
    body: Mapping[str, JsonValue] | None = None,
    *,
    options: Options | None = None,
    path: Mapping[str, str] | None = None,
    query: Mapping[str, str | Sequence[str]] | None = None,
    safe: bool = True,
) -> Steps[Answer]:
    """One request and its answer."""
    call = Call(operation, body, path=path or {}, query=query or {}, safe=safe)
    reply = yield from session.perform(call, options)
    return read_answer(reply, read)


def order(
    session: Session,
    operation: str,
    *,
    options: Options | None = None,
    path: Mapping[str, str] | None = None,
    safe: bool = True,
) -> Steps[None]:
    """One request that is answered by nothing."""
    reply = yield from session.perform(Call(operation, path=path or {}, safe=safe), options)
    check_empty(reply, OPERATIONS[operation].status)


def create_timer(session: Session, timer: CreateTimer, options: Options | None = None) -> Steps[Timer]:
    """Creates it once, however often its answer is lost."""
    automatic = timer.idempotency_key is UNSET
    body = timer.to_json()
    if automatic:
        body["idempotencyKey"] = new_key()
    place = Place(timer.namespace, timer.id)
    # The key stands in the body: the server keeps heads of requests that come again, and this one then does.
    call = Call("createTimer", body, first_headers=FIRST_TRY if automatic else {}, place=place)
    reply = yield from session.perform(call, options)
    created = read_answer(reply, Timer.from_json)
    if session.router is not None:
        session.router.check(place, created.shard_id)
    return created


def update_timer(session: Session, change: UpdateTimer, options: Options | None = None) -> Steps[Timer]:
    """Changes a pending timer."""
    call = Call("updateTimer", change.to_json(), place=Place(change.namespace, change.timer_id))
    get = Call("getTimer", TimerName(namespace=change.namespace, timer_id=change.timer_id).to_json())
    reply = yield from _update(session, call, get, options)
    return read_answer(reply, Timer.from_json)


def update_schedule(session: Session, change: UpdateSchedule, options: Options | None = None) -> Steps[Schedule]:
    """Changes a schedule that has not ended."""
    name = ScheduleName(namespace=change.namespace, schedule_id=change.schedule_id).to_json()
    return put(session, "updateSchedule", Schedule.from_json, change.to_json(), Call("getSchedule", name), options)


def put(
    session: Session,
    operation: str,
    read: Callable[[Mapping[str, Any]], Answer],
    body: Mapping[str, JsonValue],
    get: Call,
    options: Options | None = None,
) -> Steps[Answer]:
    """Makes what `get` reads have these fields."""
    reply = yield from _update(session, Call(operation, body), get, options)
    return read_answer(reply, read)


def _update(session: Session, call: Call, get: Call, options: Options | None) -> Steps[Reply]:
    """Updates or puts; where an earlier try's answer was lost, a refusal can mean that it succeeded: what it changed has
    finished since, or has no longer the version that is expected."""
    tries = Tries()
    try:
        return (yield from session.perform(call, options, tries))
    except (NotFound, Conflict) as refused:
        if not tries.maybe_done:
            raise
        try:
            reply = yield from session.perform(get, options)
        except NotFound:
            raise refused from None
        body, code = call.body or {}, refused.code
        left_out = {"expectedVersion", "dryRun", *(get.body or ())}
        sent = {name: value for name, value in body.items() if name not in left_out}
        if not read_answer(reply, lambda found: has_fields(found, sent) and _is_written(found, body, code)):
            raise
        return reply


def _is_written(found: Mapping[str, Any], body: Mapping[str, Any], code: str) -> bool:
    """Whether what has the fields that were sent can have them by the call that was refused with this code at last."""
    if body.get("dryRun") is True:
        return False
    # Of a later version, they are another's.
    return code != "VERSION_CONFLICT" or bool(found["version"] == body.get("expectedVersion", -1) + 1)


def delete_timer(session: Session, name: TimerName, options: Options | None = None) -> Steps[None]:
    """Cancels a pending timer."""

    def is_gone(found: Mapping[str, Any]) -> bool:
        return bool(found["status"] == "canceled")

    call = Call("deleteTimer", name.to_json(), place=Place(name.namespace, name.timer_id))
    yield from _delete(session, call, Call("getTimer", name.to_json()), is_gone, options)


def delete_schedule(session: Session, wanted: DeleteSchedule, options: Options | None = None) -> Steps[None]:
    """Ends a schedule."""

    def is_gone(found: Mapping[str, Any]) -> bool:
        return bool(found["status"] == "ended")

    name = ScheduleName(namespace=wanted.namespace, schedule_id=wanted.schedule_id)
    yield from _delete(
        session, Call("deleteSchedule", wanted.to_json()), Call("getSchedule", name.to_json()), is_gone, options
    )


def revoke_key(session: Session, key_id: str, options: Options | None = None) -> Steps[None]:
    """Revokes a key; where an earlier try's answer was lost, that it is gone means success."""
    tries = Tries()
    try:
        reply = yield from session.perform(Call("revokeKey", RevokeKey(key_id=key_id).to_json()), options, tries)
    except NotFound:
        if not tries.maybe_done:
            raise
    else:
        check_empty(reply, OPERATIONS["revokeKey"].status)


def delete_flow(session: Session, wanted: DeleteFlow, options: Options | None = None) -> Steps[None]:
    """Deletes the rule of a flow."""

    def is_gone(_found: Mapping[str, Any]) -> bool:
        return False

    name = FlowName(namespace=wanted.namespace, match=wanted.match)
    yield from _delete(session, Call("deleteFlow", wanted.to_json()), Call("getFlow", name.to_json()), is_gone, options)


def delete_calendar(session: Session, wanted: DeleteCalendar, options: Options | None = None) -> Steps[None]:
    """Deletes a calendar."""

    def is_gone(_found: Mapping[str, Any]) -> bool:
        return False

    name = CalendarId(namespace=wanted.namespace, name=wanted.name)
    call, get = Call("deleteCalendar", wanted.to_json()), Call("getCalendar", name.to_json())
    yield from _delete(session, call, get, is_gone, options)


def delete_monitor(session: Session, wanted: DeleteMonitor, options: Options | None = None) -> Steps[None]:
    """Deletes a monitor."""

    def is_gone(_found: Mapping[str, Any]) -> bool:
        return False

    name = MonitorName(namespace=wanted.namespace, id=wanted.id)
    call, get = Call("deleteMonitor", wanted.to_json()), Call("getMonitor", name.to_json())
    yield from _delete(session, call, get, is_gone, options)


def delete_call(session: Session, path: Mapping[str, str], options: Options | None = None) -> Steps[None]:
    """Deletes a service call that has not started."""

    def is_gone(_found: Mapping[str, Any]) -> bool:
        return False

    yield from _delete(
        session, Call("deleteServiceCall", path=path), Call("getServiceCall", path=path), is_gone, options
    )


def _delete(
    session: Session,
    call: Call,
    get: Call,
    is_gone: Callable[[Mapping[str, Any]], bool],
    options: Options | None,
) -> Steps[None]:
    """Deletes; where an earlier try's answer was lost, a refusal can mean that this try succeeded."""
    tries = Tries()
    try:
        reply = yield from session.perform(call, options, tries)
        check_empty(reply, OPERATIONS[call.operation].status)
    except (NotFound, Conflict):
        if not tries.maybe_done:
            raise
        try:
            reply = yield from session.perform(get, options)
        except NotFound:
            return
        if not read_answer(reply, is_gone):
            raise


def submit_call(
    session: Session, tenant_id: str, submission: SubmitServiceCall, options: Options | None = None
) -> Steps[SubmittedServiceCall]:
    """Submits it once, however often its answer is lost: the id is made here."""
    if submission.service_call_id is UNSET:
        submission = replace(submission, service_call_id=str(uuid7(int(session.now() * 1000))))
    call = Call("submitServiceCall", submission.to_json(), path={"tenantId": tenant_id})
    reply = yield from session.perform(call, options)
    return read_answer(reply, SubmittedServiceCall.from_json)


def wait_for_timer(
    session: Session, name: TimerName, timeout: Duration | None, options: Options | None = None
) -> Steps[Timer]:
    """Returns the timer once it has finished."""
    until = _Waiting(session, timeout, f"timer {name.timer_id} in {name.namespace}", options)
    while True:
        reply = yield from until.read(Call("getTimer", name.to_json()))
        timer = read_answer(reply, Timer.from_json)
        if timer.status != "pending":
            return timer
        yield until.next(timer.next_attempt_at or timer.execute_at, reply)


def wait_for_call(
    session: Session, path: Mapping[str, str], timeout: Duration | None, options: Options | None = None
) -> Steps[ServiceCall]:
    """Returns the service call once it has succeeded or failed."""
    until = _Waiting(session, timeout, f"service call {path['serviceCallId']}", options)
    while True:
        reply = yield from until.read(Call("getServiceCall", path=path))
        found = read_answer(reply, ServiceCall.from_json)
        if found.status in FINISHED_CALLS:
            return found
        yield until.next(found.next_attempt_at or found.due_at, reply)


class _Waiting:
    """When something that is awaited is read again."""

    def __init__(self, session: Session, timeout: Duration | None, what: str, options: Options | None) -> None:
        self._session = session
        self._options = options or session.options
        self._end = None if timeout is None else session.monotonic() + seconds_of("timeout", timeout)
        self._pause_s = WAIT_POLL_FIRST_S
        self._what = what

    def next(self, instant: datetime, reply: Reply) -> Sleep:
        """Until the instant, if it is ahead, then ever longer. WaitTimeout: the time is over."""
        # Only `tocsin dev` sends it, whose clock can be moved.
        shown = reply.headers.get("tocsin-now")
        now_s = self._session.now() if shown is None else parse_instant(shown).timestamp()
        ahead_s = instant.timestamp() - now_s
        sleep_s_max = WAIT_SLEEP_S_MAX if shown is None else WAIT_MOVABLE_SLEEP_S_MAX
        if ahead_s > 0:
            pause_s, self._pause_s = min(ahead_s, sleep_s_max), WAIT_POLL_FIRST_S
        else:
            pause_s = min(self._next_pause_s(), sleep_s_max)
        return self._sleep(pause_s)

    def read(self, call: Call) -> Steps[Reply]:
        """Reads it, for as long as there is time. A server that is away for a while may come back within it; without a limit,
        the call's own one decides. WaitTimeout: the time is over."""
        if self._end is None:
            return (yield from self._session.perform(call, self._options))
        while True:
            left_s = max(self._end - self._session.monotonic(), WAIT_READ_S_MIN)
            limited = replace(self._options, timeout_s=min(self._options.timeout_s, left_s))
            try:
                return (yield from self._session.perform(call, limited))
            except (ApiError, TransportError) as error:
                if not is_repeated(error):
                    raise
                yield self._sleep(self._next_pause_s(), error)

    def _next_pause_s(self) -> float:
        pause_s, self._pause_s = self._pause_s, min(self._pause_s * 2, WAIT_POLL_S_MAX)
        return pause_s

    def _sleep(self, pause_s: float, why: Exception | None = None) -> Sleep:
        if self._end is None:
            return Sleep(pause_s)
        left_s = self._end - self._session.monotonic()
        if left_s <= 0:
            unread = "" if why is None else f": {why}"
            raise WaitTimeout(f"{self._what} has not finished in time{unread}") from why
        return Sleep(min(pause_s, left_s))

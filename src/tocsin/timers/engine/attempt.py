"""One attempt, from the slot that it takes to the event that reports it; and what it means for its timer. Read from top to
bottom: begin, send, conclude, record, observe."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

from tocsin.model.answer import (
    PAUSING,
    Done,
    NoCredential,
    NoResponse,
    NotSent,
    Refused,
    Reschedule,
    Response,
    Unopened,
    judge,
    retry_after_at,
)
from tocsin.model.errors import TimerNotFound, TimerNotPending, TocsinError, Unavailable
from tocsin.model.instants import format_instant
from tocsin.model.namespace import Answers, Namespace, policy_in_force
from tocsin.model.redaction import answer_snippet, path_of, secrets_of
from tocsin.model.retry import next_attempt_at
from tocsin.model.sealed import headers_opened, url_opened
from tocsin.model.timer import JSON_TYPE, LoggedAttempt, RawBody, Status
from tocsin.ports.forward import REFUSED, UNOPENED, credential_reason
from tocsin.ports.http import Exchange, Invocation
from tocsin.ports.observer import AttemptFinished, AttemptNotSent, TimerExpired, WriteRefused
from tocsin.ports.seals import NoSeals, SealBroken, Seals, opener
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.engine.recurring import postponed
from tocsin.timers.engine.rows import (
    Conclusion,
    FinalAttempt,
    InFlightAttempt,
    NextAttempt,
    Row,
    WriteOp,
    conclusion_op,
)

if TYPE_CHECKING:
    from tocsin.timers.engine.destination import DestinationPath
    from tocsin.timers.engine.dispatcher import Dispatcher
    from tocsin.timers.engine.flow_states import KeyState, Taken
    from tocsin.timers.engine.shard import Shard


class Attempt(msgspec.Struct, eq=False):
    """A request to a due row's destination, and what follows from it. No task: the caller calls `ended`.

    The shard's window has the attempt in flight until its result is recorded. It outlives the window: if the claim is lost in
    the meantime, its result decides nothing; if the shard was handed over, the next owner gets the result.
    """

    _dispatcher: Dispatcher
    _shard: Shard
    _in_flight: InFlightAttempt
    _path: DestinationPath
    _taken: Taken
    #: By which the destination's breaker knows the attempt.
    _began: int

    @classmethod
    def begin(
        cls,
        dispatcher: Dispatcher,
        shard: Shard,
        row: Row,
        path: DestinationPath,
        flow: KeyState | None,
        now_us: int,
        *,
        in_batch: bool = False,
    ) -> Attempt:
        """Takes a slot, also of its flow, and the row from the window: it is in flight. `in_batch`: the slot of the
        destination is the batch's."""
        window = shard.window
        assert window is not None
        taken: Taken = ()
        if flow is not None:
            taken = dispatcher.flows.begin(flow)
            if flow.rule.ordered:
                shard.order.give_turn(row)
        in_flight = window.dispatch(row)
        in_flight.fired_at = now_us
        began = 0 if in_batch else dispatcher.admission.begin(path, row.timer.namespace)
        return cls(dispatcher, shard, in_flight, path, taken, began)

    @property
    def webhook_id(self) -> str:
        """The same for all attempts of the firing."""
        row = self._in_flight.row
        return f"msg_{row.key[1].hex()}_{row.timer.firing}"

    def send(self) -> None:
        """Has the destination's caller send the request, and call `ended`."""
        try:
            invocation = self.invocation()
        except SealBroken as error:
            # Like every outcome, after this has returned.
            asyncio.get_running_loop().call_soon(self.ended, unopened(error))
            return
        self._path.destination.caller.invoke(invocation, self.ended)

    def item(self, first: Invocation) -> Invocation:
        """What is sent of it in a batch whose first item is given: they differ in nothing but their timers, so that only the
        first one's secrets are opened."""
        timer, in_flight = self._in_flight.row.timer, self._in_flight
        return msgspec.structs.replace(
            first,
            timer_id=timer.id,
            execute_at=timer.execute_at,
            fired_at=in_flight.fired_at,
            attempt=in_flight.number,
            payload=timer.payload,
            message_id=self.webhook_id,
            traceparent=timer.traceparent,
        )

    def invocation(self) -> Invocation:
        """What is sent, with its secrets opened. Raises SealBroken."""
        timer, fired_at = self._in_flight.row.timer, self._in_flight.fired_at
        context = self._dispatcher.context
        namespace = context.namespaces.get(timer.namespace)
        unseal = opener(context.seals, timer.namespace)
        return Invocation(
            namespace=timer.namespace,
            timer_id=timer.id,
            execute_at=timer.execute_at,
            fired_at=fired_at,
            attempt=self._in_flight.number,
            payload=timer.payload,
            message_id=self.webhook_id,
            url=url_opened(timer.url, unseal),
            method=timer.method,
            headers=headers_opened(timer.headers, unseal),
            timeout_us=timer.timeout_us,
            secrets=()
            if namespace is None or namespace.secret is None
            else tuple(map(unseal, namespace.signing.at(fired_at))),
            traceparent=timer.traceparent,
            body=timer.body,
            credential=timer.credential,
        )

    def ended(self, exchange: Exchange) -> None:
        """Takes the outcome of the request from the caller, and gives the slot to what waits for it."""
        dispatcher, path, outcome = self._dispatcher, self._path, exchange.outcome
        admission = dispatcher.admission
        admission.end(path, self._in_flight.row.timer.namespace)
        if isinstance(outcome, NotSent):
            admission.unsent(path, self._began)
            self.not_sent(outcome)
        else:
            error, boot_us = self.conclude(outcome, exchange), dispatcher.context.clock.boottime_us()
            admission.learn(path, outcome, error, began=self._began, boot_us=boot_us, lasted_us=exchange.duration_us)
        self.free_flow()
        dispatcher.serve_waiting(path.destination)
        if not path.in_flight:
            admission.settle(path)

    def conclude(self, outcome: Response | NoResponse, exchange: Exchange, batch: str | None = None) -> str | None:
        """Concludes what the outcome means for the timer, has it written and reports it; returns the error. The exchange is
        that of the request, which may have been the batch with that `webhook-id`."""
        context, in_flight = self._dispatcher.context, self._in_flight
        conclusion, word = conclude(
            in_flight,
            outcome,
            exchange.duration_us,
            context.namespaces.get(in_flight.row.timer.namespace),
            context.limits,
            now_us=context.clock.now_us(),
            jitter=context.random.random(),
            batch=batch,
            seals=context.seals,
            secrets=exchange.secrets,
        )
        counts = self._record(conclusion, context.clock.boottime_us())
        self._observe(exchange, conclusion.timer.last_error, word if counts else "superseded")
        if self._taken and isinstance(outcome, Response) and outcome.status in PAUSING:
            self._close_flow(outcome)
        if counts:
            self._pass_turn(kept=word == "retried")
        return conclusion.timer.last_error

    def accepted(self, entry: LoggedAttempt, exchange: Exchange, now_us: int, boot_us: int) -> bool:
        """Concludes that the receiver of a batch has accepted the callback, with that entry for the timer's log, and has it
        written. The caller reports it, unless it decides nothing (False)."""
        final = completed(self._in_flight, entry, self._dispatcher.context.limits, now_us)
        counts = self._record(final, boot_us)
        if counts:
            self._pass_turn(kept=False)
        else:
            self._observe(exchange, None, "superseded")
        return counts

    def entry(self, status: int, duration_us: int, batch: str) -> LoggedAttempt:
        """The entry of an accepted attempt of that batch for its timer's log."""
        return LoggedAttempt(self._in_flight.fired_at, duration_us, status, batch=batch)

    @property
    def timer_id(self) -> str:
        """The timer's id."""
        return self._in_flight.row.timer.id

    def lag_us(self, sent_at: int) -> int:
        """How late its request was when its first byte was sent, in microseconds."""
        return self._in_flight.row.waited_us(sent_at)

    def free_flow(self) -> None:
        """Frees what the attempt took of its flow."""
        if self._taken:
            self._dispatcher.flows.end(self._taken)

    def _pass_turn(self, *, kept: bool) -> None:
        """The turn of an ordered key is free, unless another attempt follows. Where a client's write has overtaken the
        result, that is decided when the write is durable."""
        order, row = self._shard.order, self._in_flight.row
        # Most rules have no order, and so no turns.
        ordered = self._taken and (order.lines or self._taken[0].rule.ordered)
        if not ordered or self._in_flight.handed_over_as:
            return
        if not kept:
            order.end_turn(row.key[1])
        elif self._taken[0].rule.ordered:
            # Its shard may have been claimed again since it began.
            order.give_turn(row)

    def _close_flow(self, outcome: Response) -> None:
        """Has the flow wait as long as a receiver asks for that takes no more now, where its rule provides for that."""
        context = self._dispatcher.context
        if outcome.retry_after is not None:
            now_us = context.clock.now_us()
            until_us = retry_after_at(outcome.retry_after, now_us, context.limits.retry_after_max_us)
            if until_us is not None:
                self._dispatcher.flows.close_for(self._taken, until_us - now_us)

    def _record(self, conclusion: Conclusion, boot_us: int) -> bool:
        """Has the conclusion written with the next batch of the shard's owner: this node, or the one to which the shard was
        handed over. False if it decides nothing, because the claim was lost or the timer was changed."""
        shard, in_flight = self._shard, self._in_flight
        if in_flight.handed_over_as:
            self._dispatcher.results.send(shard.shard_id, in_flight, conclusion)
            return True
        if shard.window is None:
            shard.forget_attempt(in_flight)
            return False
        counts = shard.window.answered(in_flight, conclusion, boot_us)
        if counts:
            shard.lane.schedule(shard, urgent=False)
        return counts

    def _observe(self, exchange: Exchange, error: str | None, word: str) -> None:
        row, timer = self._in_flight.row, self._in_flight.row.timer
        self._dispatcher.context.observe(
            AttemptFinished(
                self._shard.shard_id,
                timer.namespace,
                timer.id,
                attempt=self._in_flight.number,
                outcome=word,
                error=error,
                lag_us=None if exchange.sent_at is None else row.waited_us(exchange.sent_at),
                duration_us=exchange.duration_us,
                destination=self._path.destination.name,
                path=path_of(timer.url) if word in ("retried", "failed") else "",
            )
        )

    # ------------------------------------------------------------------ a request that was not sent

    def not_sent(self, outcome: NotSent) -> None:
        """Rule 24: the row is due as before, as if it had not been dispatched; its destination backs off for a moment. Where
        the settings forbid the address, a secret can't be opened or the credential can't be sent, the row is suspended."""
        self._observe_not_sent(outcome)
        suspended = self._suspended_for(outcome)
        if suspended is None:
            self._path.destination.start_back_off(self._dispatcher.reopened)
        self.take_back(suspended)

    def _suspended_for(self, outcome: NotSent) -> str | None:
        """The reason for which the row is suspended, where not the destination keeps the request from being sent."""
        if isinstance(outcome, Refused):
            return REFUSED
        if isinstance(outcome, Unopened):
            return UNOPENED
        if isinstance(outcome, NoCredential):
            timer = self._in_flight.row.timer
            return credential_reason(timer.namespace, timer.credential, outcome.destination)
        return None

    def take_back(self, suspended: str | None = None) -> None:
        """The row is due as before, or suspended for that reason: no request was sent."""
        shard, in_flight, row = self._shard, self._in_flight, self._in_flight.row
        if in_flight.handed_over_as:
            self._dispatcher.results.send(shard.shard_id, in_flight, NextAttempt(row.timer, row.key[0]))
        elif shard.window is None:
            shard.forget_attempt(in_flight)
        else:
            # Unless it is suspended, it is due again, and deferred until the back-off ends.
            is_suspended = shard.window.not_sent(in_flight, suspended)
            if is_suspended or row.key[1] not in shard.window.rows:
                shard.order.end_turn(row.key[1])
            shard.changed()
            if is_suspended and suspended is not None:
                shard.note_suspension(row, suspended)

    # ------------------------------------------------------------------ of a batch

    def waits_until(self, latest_us: int) -> None:
        """The attempt waits for others of its batch, until that instant at most. What reckons when it has certainly ended
        counts from there."""
        self._in_flight.fired_at = latest_us

    def begins_in_batch(self, row: Row, now_us: int) -> bool:
        """Whether the attempt of that row may begin now that its batch is sent, which it does then (rule 34). It may not if
        something durable has taken the row's place, its shard is lost or on its way to another node, its flow is paused or
        its receiver has closed it, or it is too late for it."""
        in_flight, shard = self._in_flight, self._shard
        if in_flight.row is not row or in_flight.stale or in_flight.handed_over_as:
            return False
        # Another node may have fired or deleted the timer of a lost shard.
        if shard.window is None or shard.draining:
            return False
        if self._taken:
            flow_us = self._dispatcher.context.flow_time_us()
            if any(each.rule.flow.closed_until(now_us) is not None or each.is_closed(flow_us) for each in self._taken):
                return False
        limit = None if row.timer.expire_after_us is None else row.timer.expires_at
        if row.key[0] > now_us or (limit is not None and now_us > limit):
            return False
        in_flight.fired_at = now_us
        return True

    def _observe_not_sent(self, outcome: NotSent) -> None:
        timer = self._in_flight.row.timer
        detail = f"{outcome.detail} ({outcome.addresses})" if isinstance(outcome, Refused) else outcome.detail
        self._dispatcher.context.observe(
            AttemptNotSent(
                self._shard.shard_id,
                timer.namespace,
                timer.id,
                attempt=self._in_flight.number,
                code=outcome.code,
                detail=detail or None,
                destination=self._path.destination.name,
            )
        )


def unopened(error: SealBroken) -> Exchange:
    """The exchange of a request whose secrets can't be opened: it was not sent, and waits for the mend."""
    return Exchange(Unopened("SECRET_UNREADABLE", f"a secret of the request can't be decrypted: {error}"), None, 0)


def end_expired(context: Context, shard: Shard, row: Row, now_us: int) -> bool:
    """Ends a due row for which no attempt may begin any more (rule 27); False if one may."""
    conclusion, window = conclude_expired(row, now_us), shard.window
    if conclusion is None:
        return False
    assert window is not None
    if window.end_unfired(row, conclusion, context.clock.boottime_us()):
        shard.lane.schedule(shard, urgent=False)
        timer = conclusion.timer
        late_us = now_us - (timer.expires_at or now_us)
        context.observe(TimerExpired(shard.shard_id, timer.namespace, timer.id, timer.status.value, late_us))
    return True


# ---------------------------------------------------------------------- conclusions, pure

#: Characters of an attempt's error that are kept: `row_reserve_bytes` has room for a log of such errors.
ERROR_CHARS_MAX = 200
_NO_SEALS = NoSeals()


def conclude(
    attempt: InFlightAttempt,
    outcome: Response | NoResponse,
    duration_us: int,
    namespace: Namespace | None,
    limits: EngineLimits,
    *,
    now_us: int,
    jitter: float,
    batch: str | None = None,
    seals: Seals = _NO_SEALS,
    secrets: tuple[str, ...] = (),
) -> tuple[Conclusion, str]:
    """The conclusion of an attempt that was sent, by its answer and by the policies of its timer and namespace, and the
    outcome that events report: done, rescheduled, retried or failed. `batch` is the `webhook-id` of the batch that it was
    part of. The response may repeat secrets: `seals` open those of the timer, `secrets` are those that it does not have."""
    timer = attempt.row.timer
    verdict = judge(
        outcome,
        now_us=now_us,
        retry_after_us_max=limits.retry_after_max_us,
        instant_us_max=now_us + limits.execute_ahead_max_us,
        payload_bytes_max=limits.payload_bytes_max,
        payload_depth_max=limits.payload_depth_max,
        # The namespace chose it for its receivers: hooks are those of others, which answer with a text of their own.
        strict=namespace is not None and namespace.answers is Answers.STRICT and timer.notifies is None,
    )
    accepted = isinstance(verdict, Done)
    error = None if isinstance(verdict, (Done, Reschedule)) else verdict.error[:ERROR_CHARS_MAX]
    entry = _entry(attempt, outcome, duration_us, error, batch, seals, secrets, accepted=accepted)
    if isinstance(verdict, Done):
        return completed(attempt, entry, limits, now_us), "done"
    first = _first_attempt_at(attempt)
    after = msgspec.structs.replace(
        timer,
        attempts=attempt.number,
        first_attempt_at=first,
        updated_at=now_us,
        last_error=error,
        attempt_log=_log_with(attempt, entry, limits),
    )
    if isinstance(verdict, Reschedule) and timer.schedule is not None:
        # Only this occurrence is postponed: instant and payload are the definition's.
        after.attempts, after.first_attempt_at, after.firing = 0, None, postponed(timer)
        return NextAttempt(after, verdict.execute_at), "rescheduled"
    if isinstance(verdict, Reschedule):
        after.execute_at = verdict.execute_at
        after.attempts, after.first_attempt_at, after.firing, after.replay = 0, None, "", ""
        if verdict.payload is not None:
            if after.body is None:
                after.payload = verdict.payload.copy()
            else:
                after.body = RawBody(JSON_TYPE, json=verdict.payload.copy())
            if after.debounced is not None:
                after.debounced = msgspec.structs.replace(after.debounced, collected=0)
        return NextAttempt(after, verdict.execute_at), "rescheduled"
    again_at = None
    if not verdict.final:
        again_at = next_attempt_at(
            policy_in_force(timer.retry, namespace),
            attempts_made=attempt.number,
            first_attempt_at=first,
            now_us=now_us,
            jitter=jitter,
            not_before_us=verdict.not_before_us,
        )
    limit = timer.expires_at
    if again_at is not None and limit is not None and again_at > limit:
        after.last_error = f"{error}; {_none_after(limit)}"
        again_at = None
    if again_at is None:
        after.status, after.executed_at = Status.FAILED, now_us
        return FinalAttempt(after), "failed"
    return NextAttempt(after, again_at), "retried"


def completed(attempt: InFlightAttempt, entry: LoggedAttempt, limits: EngineLimits, now_us: int) -> FinalAttempt:
    """The conclusion of an attempt that the receiver accepted, with that entry for the timer's log."""
    return FinalAttempt(
        msgspec.structs.replace(
            attempt.row.timer,
            status=Status.COMPLETED,
            attempts=attempt.number,
            first_attempt_at=_first_attempt_at(attempt),
            updated_at=now_us,
            executed_at=now_us,
            last_error=None,
            attempt_log=_log_with(attempt, entry, limits),
        )
    )


def _first_attempt_at(attempt: InFlightAttempt) -> int:
    first = attempt.row.timer.first_attempt_at
    return attempt.fired_at if first is None else first


def _log_with(attempt: InFlightAttempt, entry: LoggedAttempt, limits: EngineLimits) -> tuple[LoggedAttempt, ...]:
    return (*attempt.row.timer.attempt_log, entry)[-limits.attempt_log_max :]


def conclude_expired(row: Row, now_us: int) -> FinalAttempt | None:
    """The end of a due timer that no attempt may begin for any more (rule 27); None if one may begin now.

    It has failed if an attempt was made since its instant, else expired. A row that waits for another instant than its
    timer's although no attempt is recorded was handed over with an attempt in flight (rule 25), whose result was lost.
    """
    timer, limit = row.timer, row.timer.expires_at
    if limit is None or now_us <= limit:
        return None
    after = msgspec.structs.replace(timer, status=Status.FAILED, updated_at=now_us, executed_at=now_us)
    if timer.attempts:
        after.last_error = f"{timer.last_error}; {_none_after(limit)}"
    elif row.key[0] != timer.execute_at:
        after.last_error = f"{_none_after(limit)}; an attempt had begun, and its result is unknown"
    else:
        after.status, after.last_error = Status.EXPIRED, f"{_none_after(limit)}, and none had begun"
    return FinalAttempt(after)


def _none_after(limit_us: int) -> str:
    return f"EXPIRED: no attempt may begin after {format_instant(limit_us)}"


def _entry(
    attempt: InFlightAttempt,
    outcome: Response | NoResponse,
    duration_us: int,
    error: str | None,
    batch: str | None,
    seals: Seals,
    secrets: tuple[str, ...],
    *,
    accepted: bool,
) -> LoggedAttempt:
    """The attempt for the timer's log. What an accepting receiver answers adds nothing, and is not kept."""
    if not isinstance(outcome, Response):
        return LoggedAttempt(attempt.fired_at, duration_us, 0, error, batch=batch)
    if accepted or not outcome.body:
        return LoggedAttempt(attempt.fired_at, duration_us, outcome.status, error, batch=batch)
    timer = attempt.row.timer
    unseal = opener(seals, timer.namespace)
    headers = [
        *(headers_opened(timer.headers, unseal) or {}).items(),
        *(("authorization", secret) for secret in secrets),
    ]
    known = secrets_of(url_opened(timer.url, unseal), headers)
    answer = answer_snippet(outcome.body, truncated=outcome.truncated, secrets=known)
    return LoggedAttempt(attempt.fired_at, duration_us, outcome.status, error, answer, batch)


# ---------------------------------------------------------------------- results of attempts whose shard was handed over

#: How long after its time-out a handed-over attempt counts as lost and is made again. It leaves time for the result to reach
#: the owner, and for two clocks that each differ from the store's as much as is allowed.
HAND_OVER_MARGIN_US = 5_000_000

#: Has the shard's owner do the write. Raises its error.
Submit = Callable[[int, WriteOp], Awaitable[object]]


class HandedOverResults:
    """Sends results of attempts that were in flight when their shard was handed over to its present owner (rule 25): each one
    until the owner has written it or found the timer changed, for at most `drain_timeout`.

    Sending a result twice is harmless: it applies to one generation of the row and ends that generation.
    """

    def __init__(self, context: Context, spawn: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        #: Set when other nodes can be reached; while None, a hand-over waits for the attempts in flight.
        self.submit: Submit | None = None
        #: How many results of each shard no owner has confirmed yet.
        self.pending: Counter[int] = Counter()
        self._context = context
        self._spawn = spawn

    def send(self, shard_id: int, attempt: InFlightAttempt, conclusion: Conclusion) -> None:
        """Begins to send the conclusion of an attempt that has ended."""
        self.pending[shard_id] += 1
        self._spawn(self._send(shard_id, attempt, conclusion))

    async def _send(self, shard_id: int, attempt: InFlightAttempt, conclusion: Conclusion) -> None:
        try:
            await self._submit(shard_id, attempt, conclusion)
        except (TimerNotFound, TimerNotPending):
            # The timer was changed in the meantime.
            pass
        except TocsinError as error:
            self._context.observe(WriteRefused(shard_id, attempt.row.key[1], str(error)))
        finally:
            self.pending -= Counter((shard_id,))

    async def _submit(self, shard_id: int, attempt: InFlightAttempt, conclusion: Conclusion) -> None:
        """Raises the owner's error, and Unavailable only after the time limit."""
        assert self.submit is not None
        clock, limits = self._context.clock, self._context.limits
        deadline = clock.boottime_us() + limits.drain_timeout_us
        while True:
            try:
                await self.submit(shard_id, conclusion_op(attempt.row, attempt.handed_over_as, conclusion))
                return
            except Unavailable:
                if clock.boottime_us() >= deadline:
                    raise
            await asyncio.sleep(limits.store_retry_interval_us / 1e6)

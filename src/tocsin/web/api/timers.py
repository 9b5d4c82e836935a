"""The operations on timers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, cast

import msgspec
from msgspec import UNSET

from tocsin.model.access import Role
from tocsin.model.condition import Condition, Outcome
from tocsin.model.errors import FieldError, InvalidInput, TocsinError
from tocsin.model.packed import PackedTimer
from tocsin.model.timer import Timer
from tocsin.ports.tracing import CreateTraces
from tocsin.timers.service import TimerService, TimerView
from tocsin.timers.writing import CreateOutcome
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiLimits, ApiRequest
from tocsin.web.http import wire
from tocsin.web.http.batches import WHOLE_BYTES_MAX, TimeSlice, items_of, joined
from tocsin.web.http.codec import Codec
from tocsin.web.http.convert import RequestParser, below_path, explanation_answer, history_answer, name_of, timer_answer
from tocsin.web.http.errors import MalformedBody, item_error
from tocsin.web.http.reading import JsonReader, check_utf8
from tocsin.web.http.repeated import (
    FIRST_TRY_HEADER,
    REPLAYED,
    UNCHANGED,
    condition_of,
    is_first_try,
    key_in,
    refuse_key,
)
from tocsin.web.http.repeated import HEADER as KEY_HEADER
from tocsin.web.http.replays import ReplayTimers

#: Response headers of a create that wrote nothing.
_OUTCOME_HEADERS = {Outcome.EXISTING: UNCHANGED, Outcome.REPLAYED: REPLAYED}

#: Results of a batch that are encoded in one step.
_ENCODED_TOGETHER = 50

#: Response header of a write that another node has done.
FORWARDED = (b"tocsin-forwarded", b"1")

_operation = partial(Operation, reach=Reach.NAMESPACE)


class BatchKey(NamedTuple):
    """The headers of a batch about idempotency: the key of the items without one, and whether no key was sent before."""

    named: str | None
    first_try: bool


_NO_KEY = BatchKey(None, False)


def written(request: ApiRequest, view: TimerView) -> wire.Timer:
    """The timer; headers report if nothing was written, and if another node was asked."""
    if view.outcome is not Outcome.CREATED or view.forwarded:
        outcome = _OUTCOME_HEADERS.get(view.outcome)
        request.answer_headers = [*([outcome] if outcome else ()), *([FORWARDED] if view.forwarded else ())]
    return timer_answer(view)


class TimerHandlers:
    """Handles create, get, history, update, delete, replay, list, and create in batches, of which `item_refused` gets the
    status of each error."""

    def __init__(
        self,
        service: TimerService,
        parser: RequestParser,
        limits: ApiLimits,
        traces: CreateTraces | None = None,
        codec: Codec | None = None,
        item_refused: Callable[[int], None] | None = None,
    ) -> None:
        self._codec = codec
        self._item_refused = item_refused
        self._traces = traces
        self._service = service
        self._parser = parser
        self._limits = limits
        self._encode = msgspec.json.Encoder().encode
        self._item_reader = JsonReader(wire.CreateTimer)
        self._batch = JsonReader(wire.BatchCreateTimers)
        self._batch_items = JsonReader(wire.BatchCreateRaw)

    @_operation("createTimer", "/api/v1/timers/create", Role.WRITE, answer=written, shortcut="create_packed")
    def create(self, request: ApiRequest, sent: wire.CreateTimer) -> ApiRequest:
        """The timer is durable when the response arrives. A pending timer with the same id is replaced, unless onConflict
        forbids it; the id of a finished timer is free. With an idempotency key the request is safe to repeat at any time:
        it creates one timer, which fires once."""
        timer, condition = self._timer(request, sent, request.trace(self._traces, "createTimer"))
        self._service.create_for(request, timer, condition)
        return request

    def create_packed(self, request: ApiRequest, body: bytes) -> bool:
        """Begins `create` if the codec takes the request: it will be completed, or an error is raised. Otherwise nothing has
        happened."""
        key = _batch_key(request.headers)
        if self._codec is None or key is None:
            return False
        timer = self._codec.create(body, request.now_us, *key)
        if timer is None:
            return False
        request.permit(Role.WRITE, timer.namespace)
        if (traceparent := request.trace(self._traces, "createTimer")) is not None:
            timer.traceparent = traceparent
        self._service.create_for(request, timer)
        return True

    def _timer(
        self, request: ApiRequest, sent: wire.CreateTimer, traceparent: str | None
    ) -> tuple[Timer, Condition | None]:
        timer = self._parser.timer(sent, request.now_us, traceparent)
        headers = request.headers
        unconditional = sent.on_conflict is UNSET and sent.idempotency_key is UNSET and KEY_HEADER not in headers
        if unconditional and FIRST_TRY_HEADER not in headers:
            return timer, None
        named, first_try = key_in(headers.get(KEY_HEADER)), is_first_try(headers.get(FIRST_TRY_HEADER))
        return timer, condition_of(sent, named, timer.execute_at, first_try=first_try)

    @_operation("getTimer", "/api/v1/timers/get", Role.READ)
    async def get(self, request: ApiRequest, sent: wire.TimerName) -> wire.Timer:
        """Pending, or finished within its namespace's retention."""
        return timer_answer(await self._service.get(*self._parser.name(sent)))

    @_operation("explainTimer", "/api/v1/timers/explain", Role.READ)
    async def explain(self, request: ApiRequest, sent: wire.TimerName) -> wire.Explanation:
        """Where the timer is now and what happens next, by the node that owns its shard; any node can be asked. If the owner
        can't be asked, the sentence states that, and a due timer's state is `unknown`. A retry that is in flight while its
        shard gets another owner is `retrying` still, until its time-out, which `next` is then: what is stored is the same."""
        return explanation_answer(await self._service.explain(*self._parser.name(sent)))

    @_operation("timerHistory", "/api/v1/timers/history", Role.READ)
    async def history(self, request: ApiRequest, sent: wire.TimerHistory) -> wire.RunPageAnswer:
        """A run is what became of one instant of the timer. The current run comes first. Earlier ones stay within the
        namespace's retention, whatever became of the timer: rescheduled, changed, created again. The namespace's history mode
        decides which runs are kept. Paginated like lists."""
        return history_answer(await self._service.history(*self._parser.history_request(sent)))

    @_operation("updateTimer", "/api/v1/timers/update", Role.WRITE, answer=written)
    async def update(self, request: ApiRequest, sent: wire.UpdateTimer) -> TimerView:
        """Changes only the given fields. A new executeAt starts over: the count of attempts returns to zero."""
        changes = self._parser.changes(sent, request.now_us)
        return await self._service.update(*name_of(sent), changes)

    @_operation("deleteTimer", "/api/v1/timers/delete", Role.WRITE, status=204)
    async def delete(self, request: ApiRequest, sent: wire.TimerName) -> None:
        """An attempt that is in flight may still arrive; it is not retried."""
        if await self._service.delete(*self._parser.name(sent)):
            request.answer_headers = [FORWARDED]

    @_operation("replayTimers", "/api/v1/timers/replay", Role.WRITE)
    async def replay(self, request: ApiRequest, sent: ReplayTimers) -> wire.BatchResults:
        """Each finished timer that is retained with its payload becomes pending again. Its attempts start over under the
        webhook-id of its latest run, so that a receiver that has done the work recognises the repetition. Everything earlier
        stays in its history. Results are in the order of the ids. A timer that can't be replayed does not affect the
        others."""
        refuse_key(request.headers)
        outcomes = await self._service.replay(sent.namespace, sent.ids, self._parser.replay(sent, request.now_us))
        if any(isinstance(each, TimerView) and each.forwarded for each in outcomes):
            request.answer_headers = [FORWARDED]
        results = (_result(_as_sent(each), request.correlation_id) for each in outcomes)
        return wire.BatchResults(await self._service.turns.each(results))

    @_operation("listTimers", "/api/v1/timers/list", Role.READ)
    async def list(self, request: ApiRequest, sent: wire.ListTimers) -> wire.TimerPage:
        """Paginated: send nextCursor back as cursor until a response has none. executeAfter is inclusive, executeBefore
        exclusive. The namespace * lists the timers of all namespaces that the API key has access to, in one order."""
        wanted, explained = self._parser.list_request(sent, request.key), sent.explain is True
        listed, cursor = await self._service.list_answers(wanted, timer_answer, explained=explained)
        return wire.TimerPage(listed, UNSET if cursor is None else cursor)

    @_operation(
        "batchCreateTimers", "/api/v1/timers/batch/create", Role.WRITE, request=wire.BatchCreateTimers, batch=True
    )
    async def create_batch(self, request: ApiRequest) -> bytes:
        """Results are in the order of the timers sent. A timer that can't be created does not affect the others. The header
        Idempotency-Key applies to each timer without a key of its own."""
        traceparent = request.trace(self._traces, "batchCreateTimers")
        key = BatchKey(key_in(request.headers.get(KEY_HEADER)), is_first_try(request.headers.get(FIRST_TRY_HEADER)))
        if packed := self._packed(request, key):
            if traceparent is not None:
                for each in packed:
                    each.traceparent = traceparent
            return await self._encoded(request, await self._service.create_packed(packed), TimeSlice())
        time_slice = TimeSlice()
        items = await self._items(request.body, time_slice)
        accepted: list[Timer] = []
        conditions: list[Condition | None] = []
        outcomes: list[TimerView | TocsinError | None] = []
        for position, item in enumerate(items):
            if time_slice.is_over():
                await time_slice.yield_now()
            outcome = self._accept(item, position, request, traceparent, key)
            if isinstance(outcome, TocsinError):
                outcomes.append(outcome)
                continue
            timer, condition = outcome
            accepted.append(timer)
            conditions.append(condition)
            outcomes.append(None)
        answered = await self._service.create_many(accepted, conditions) if accepted else []
        created = iter(answered)
        return await self._encoded(
            request, [next(created) if known is None else known for known in outcomes], time_slice
        )

    def _packed(self, request: ApiRequest, key: BatchKey) -> Sequence[PackedTimer] | None:
        """The batch's timers, if the codec takes all of them, and the caller may create them."""
        if self._codec is None or len(request.body) > WHOLE_BYTES_MAX:
            return None
        packed = self._codec.creates(request.body, request.now_us, *key, self._limits.batch_items_max)
        try:
            for namespace in {timer.namespace for timer in packed or ()}:
                request.permit(Role.WRITE, namespace)
        except TocsinError:
            return None
        return packed

    async def _encoded(self, request: ApiRequest, outcomes: Sequence[CreateOutcome], time_slice: TimeSlice) -> bytes:
        """The answer to a batch."""
        response, size = [b'{"results":'], 0
        for begin in range(0, len(outcomes), _ENCODED_TOGETHER):
            if time_slice.is_over():
                await time_slice.yield_now()
            encoded = self._results(request, outcomes[begin : begin + _ENCODED_TOGETHER])
            response += (b"," if begin else b"[", encoded)
            size += len(encoded)
        response.append(b"]}" if outcomes else b"[]}")
        return await joined(response, size)

    def _results(self, request: ApiRequest, outcomes: Sequence[CreateOutcome]) -> bytes:
        """Results of a batch as the elements of a JSON array."""
        if {*map(type, outcomes)} == {bytes}:
            return b'{"timer":%b}' % b'},{"timer":'.join(cast("Sequence[bytes]", outcomes))
        if any(isinstance(each, TimerView) and each.forwarded for each in outcomes):
            request.answer_headers = [FORWARDED]
        results = [
            msgspec.Raw(b'{"timer":%b}' % each)
            if isinstance(each, bytes)
            else _result(each, request.correlation_id, self._item_refused)
            for each in outcomes
        ]
        return self._encode(results)[1:-1]

    def _accept(
        self,
        item: wire.CreateTimer | msgspec.Raw | bytes,
        position: int,
        request: ApiRequest,
        traceparent: str | None,
        key: BatchKey,
    ) -> tuple[Timer, Condition | None] | TocsinError:
        try:
            sent = item if isinstance(item, wire.CreateTimer) else self._item(item, position)
        except InvalidInput as error:
            return error
        try:
            request.permit(Role.WRITE, sent.namespace)
            timer = self._parser.timer(sent, request.now_us, traceparent)
            if sent.on_conflict is UNSET and sent.idempotency_key is UNSET and key.named is None:
                return timer, None
            named = key.named if sent.idempotency_key is UNSET else None
            return timer, condition_of(sent, named, timer.execute_at, first_try=key.first_try)
        except InvalidInput as error:
            return below_path(error, f"timers[{position}]")
        except TocsinError as error:
            return error

    async def _items(self, body: bytes, time_slice: TimeSlice) -> Sequence[wire.CreateTimer | msgspec.Raw | bytes]:
        """All items decoded at once, if all have the right types, as usual; otherwise, and for long bodies, their texts."""
        items: Sequence[wire.CreateTimer | msgspec.Raw]
        if len(body) > WHOLE_BYTES_MAX:
            limits = self._limits
            return await items_of(body, limits.batch_items_max, limits.request_bytes_max, time_slice)
        check_utf8(body)
        try:
            items = self._batch.read(body).timers
        except MalformedBody:
            raise
        except InvalidInput:
            items = self._batch_items.read(body).timers
        if len(items) > self._limits.batch_items_max:
            reason = f"has {len(items)} entries; at most {self._limits.batch_items_max} are accepted"
            raise InvalidInput(FieldError("timers", reason))
        return items

    def _item(self, text: msgspec.Raw | bytes, position: int) -> wire.CreateTimer:
        check_utf8(bytes(text))
        return self._item_reader.read(text, f"timers[{position}]")


#: The fields of a replay, by those of the changes that it makes.
_REPLAY_FIELDS = {"callbackUrl": "setUrl", "headers": "setHeaders"}


def _as_sent(outcome: TimerView | TocsinError) -> TimerView | TocsinError:
    """The outcome of a replay, with the names of its request's fields."""
    if type(outcome) is not InvalidInput:
        return outcome
    parts = [(error.path.partition("."), error.reason) for error in outcome.errors]
    return InvalidInput(
        *(FieldError(f"{_REPLAY_FIELDS.get(name, name)}{dot}{rest}", reason) for (name, dot, rest), reason in parts)
    )


def _batch_key(headers: Mapping[bytes, bytes]) -> BatchKey | None:
    """The headers of one request; None if they are not valid, which is an error of its own if the body is."""
    if KEY_HEADER not in headers and FIRST_TRY_HEADER not in headers:
        return _NO_KEY
    try:
        return BatchKey(key_in(headers.get(KEY_HEADER)), is_first_try(headers.get(FIRST_TRY_HEADER)))
    except InvalidInput:
        return None


def _result(
    outcome: TimerView | TocsinError, correlation_id: str, refused: Callable[[int], None] | None = None
) -> wire.BatchResult:
    if isinstance(outcome, TocsinError):
        error = item_error(outcome, correlation_id)
        if refused is not None:
            refused(error.status)
        return wire.BatchResult(error=error)
    result = wire.BatchResult(timer=timer_answer(outcome))
    if outcome.outcome is Outcome.CREATED:
        return result
    if outcome.outcome is Outcome.EXISTING:
        result.existing = True
    elif outcome.outcome is Outcome.REPLAYED:
        result.replayed = True
    return result

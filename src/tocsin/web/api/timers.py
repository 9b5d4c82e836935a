"""Handlers of the operations on timers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET

from tocsin.model.access import Role
from tocsin.model.condition import Condition, Outcome
from tocsin.model.errors import FieldError, InvalidInput, TocsinError
from tocsin.model.timer import Timer
from tocsin.timers.service import TimerService, TimerView
from tocsin.web.api.request import ApiLimits, ApiRequest, Begin, CustomResponse, Encode, Handler
from tocsin.web.http import wire
from tocsin.web.http.batches import WHOLE_BYTES_MAX, TimeSlice, items_of
from tocsin.web.http.convert import RequestParser, below_path, timer_answer, traceparent_of
from tocsin.web.http.errors import MalformedBody, item_error
from tocsin.web.http.reading import JsonReader, check_utf8
from tocsin.web.http.repeated import HEADER as KEY_HEADER
from tocsin.web.http.repeated import condition_of, key_in

#: Response headers of a create that wrote nothing.
_OUTCOME_HEADERS = {
    Outcome.EXISTING: (b"tocsin-existing", b"true"),
    Outcome.REPLAYED: (b"idempotency-replayed", b"true"),
}


class TimerHandlers:
    """Handles create, get, update, delete, list, and create in batches."""

    def __init__(self, service: TimerService, parser: RequestParser, limits: ApiLimits) -> None:
        self._service = service
        self._parser = parser
        self._limits = limits
        self._encode = msgspec.json.Encoder().encode
        self._create = JsonReader(wire.CreateTimer)
        self._name = JsonReader(wire.TimerName)
        self._update = JsonReader(wire.UpdateTimer)
        self._list = JsonReader(wire.ListTimers)
        self._batch = JsonReader(wire.BatchCreateTimers)
        self._batch_items = JsonReader(wire.BatchCreateRaw)

    def by_name(self) -> dict[str, Handler]:
        """The handlers by operation name."""
        return {
            "createTimer": self.create,
            "getTimer": self.get,
            "updateTimer": self.update,
            "deleteTimer": self.delete,
            "listTimers": self.list,
            "batchCreateTimers": self.create_batch,
        }

    def direct(self) -> dict[str, tuple[Begin, Encode]]:
        """The operations with a direct path, which needs no task, by name."""
        return {"createTimer": (self.begin_create, self._encode_created)}

    async def create(self, request: ApiRequest) -> bytes | CustomResponse:
        """Creates a timer."""
        return self._encode_created(await self._service.create(*self._timer(request)))

    def begin_create(self, request: ApiRequest, done: Callable[[object], None]) -> None:
        """Creates a timer without waiting: `done` gets the view or the error. Raises errors found immediately."""
        timer, condition = self._timer(request)
        self._service.begin_create(timer, done, condition)

    def _timer(self, request: ApiRequest) -> tuple[Timer, Condition | None]:
        sent = self._create.read(request.body)
        request.permit(Role.WRITE, sent.namespace)
        timer = self._parser.timer(sent, request.now_us, traceparent_of(request.headers.get(b"traceparent")))
        if sent.on_conflict is UNSET and sent.idempotency_key is UNSET and KEY_HEADER not in request.headers:
            return timer, None
        return timer, condition_of(sent, key_in(request.headers.get(KEY_HEADER)), timer.execute_at)

    def _encode_created(self, view: TimerView) -> bytes | CustomResponse:
        body = self._encode_view(view)
        return (
            body
            if view.outcome is Outcome.CREATED
            else CustomResponse(body, "application/json", (_OUTCOME_HEADERS[view.outcome],))
        )

    def _encode_view(self, view: TimerView) -> bytes:
        return self._encode(timer_answer(view))

    async def get(self, request: ApiRequest) -> bytes:
        """Returns a timer, pending or finished."""
        namespace, timer_id = self._named(request, Role.READ)
        return self._encode_view(await self._service.get(namespace, timer_id))

    async def update(self, request: ApiRequest) -> bytes:
        """Changes a pending timer."""
        sent = self._update.read(request.body)
        request.permit(Role.WRITE, sent.namespace)
        changes = self._parser.changes(sent, request.now_us)
        return self._encode_view(await self._service.update(*self._parser.name(sent), changes))

    async def delete(self, request: ApiRequest) -> bytes:
        """Cancels a pending timer."""
        namespace, timer_id = self._named(request, Role.WRITE)
        await self._service.delete(namespace, timer_id)
        return b""

    async def list(self, request: ApiRequest) -> bytes:
        """Returns a page of timers."""
        sent = self._list.read(request.body)
        request.permit(Role.READ, sent.namespace)
        views, cursor = await self._service.list(self._parser.list_request(sent))
        page = wire.TimerPage([timer_answer(view) for view in views], UNSET if cursor is None else cursor)
        return self._encode(page)

    def _named(self, request: ApiRequest, role: Role) -> tuple[str, str]:
        sent = self._name.read(request.body)
        request.permit(role, sent.namespace)
        return self._parser.name(sent)

    async def create_batch(self, request: ApiRequest) -> bytes:
        """Creates many timers: invalid ones fail separately, the others go to the service together."""
        named = key_in(request.headers.get(KEY_HEADER))
        time_slice = TimeSlice()
        items = await self._items(request.body, time_slice)
        traceparent = traceparent_of(request.headers.get(b"traceparent"))
        accepted: list[Timer] = []
        conditions: list[Condition | None] = []
        outcomes: list[TimerView | TocsinError | None] = []
        for position, item in enumerate(items):
            await time_slice.yield_if_over()
            read = self._item(item, position) if isinstance(item, bytes | msgspec.Raw) else item
            outcome = (
                read if isinstance(read, TocsinError) else self._accept(read, position, request, traceparent, named)
            )
            if isinstance(outcome, TocsinError):
                outcomes.append(outcome)
                continue
            timer, condition = outcome
            accepted.append(timer)
            conditions.append(condition)
            outcomes.append(None)
        created = iter(await self._service.create_many(accepted, conditions) if accepted else ())
        results: list[bytes] = []
        for known in outcomes:
            await time_slice.yield_if_over()
            results.append(self._encode(_result(next(created) if known is None else known, request.correlation_id)))
        if not results:
            return b'{"results":[]}'
        # Joined in one copy: the response may have 32 MB.
        results[0] = b'{"results":[' + results[0]
        results[-1] += b"]}"
        return b",".join(results)

    def _accept(
        self, sent: wire.CreateTimer, position: int, request: ApiRequest, traceparent: str | None, named: str | None
    ) -> tuple[Timer, Condition | None] | TocsinError:
        try:
            request.permit(Role.WRITE, sent.namespace)
            timer = self._parser.timer(sent, request.now_us, traceparent)
            if sent.on_conflict is UNSET and sent.idempotency_key is UNSET and named is None:
                return timer, None
            return timer, condition_of(sent, named if sent.idempotency_key is UNSET else None, timer.execute_at)
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
        self._check_count(len(items))
        return items

    def _item(self, text: msgspec.Raw | bytes, position: int) -> wire.CreateTimer | TocsinError:
        try:
            check_utf8(bytes(text))
            return self._create.read(text, f"timers[{position}]")
        except InvalidInput as error:
            return error

    def _check_count(self, count: int) -> None:
        if count > self._limits.batch_items_max:
            reason = f"has {count} entries; at most {self._limits.batch_items_max} are accepted"
            raise InvalidInput(FieldError("timers", reason))


def _result(outcome: TimerView | TocsinError, correlation_id: str) -> wire.BatchResult:
    if isinstance(outcome, TocsinError):
        return wire.BatchResult(error=item_error(outcome, correlation_id))
    result = wire.BatchResult(timer=timer_answer(outcome))
    if outcome.outcome is Outcome.EXISTING:
        result.existing = True
    elif outcome.outcome is Outcome.REPLAYED:
        result.replayed = True
    return result

"""Creates many timers: in requests of bounded size, each timer with its own key and result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tocsin_client._core.answers import error_of_item, read_answer
from tocsin_client._core.flows import FIRST_TRY
from tocsin_client._core.ids import new_key
from tocsin_client._core.retries import is_repeated, maybe_done, retry_delay
from tocsin_client._core.routing import Place
from tocsin_client._core.session import Call, Options, Session, remaining
from tocsin_client._core.steps import Sleep, Steps
from tocsin_client._error_bases import ApiError, InvalidArgument, TransportError
from tocsin_client._generated.models import BatchResult, CreateTimer, ReplayTimers, Timer
from tocsin_client._values import JsonValue, encode, object_json

ITEMS_MAX = 1_000
BYTES_MAX = 8 * 1024 * 1024
#: Of a request around its timers.
ENVELOPE_BYTES = len(b'{"timers":[]}')


@dataclass(frozen=True)
class Item:
    """A timer as it is sent, with its key."""

    place: Place
    body: dict[str, JsonValue]
    #: Of the body, and a comma.
    size_bytes: int
    #: Whether the key was made here, so that no earlier request can have used it.
    automatic: bool


@dataclass(frozen=True)
class ItemResult:
    """What became of one timer of a batch: exactly one of `timer` and `error`."""

    timer: Timer | None = None
    error: ApiError | TransportError | InvalidArgument | None = None
    #: With `on_conflict="keep"`: the timer existed, and nothing was written.
    existing: bool = False
    #: An earlier request with the same idempotency key has created it.
    replayed: bool = False

    def unwrap(self) -> Timer:
        """The timer; raises the error."""
        if self.error is not None:
            raise self.error
        assert self.timer is not None
        return self.timer


#: Gets the place of a timer in its batch, and what became of it.
Settle: TypeAlias = Callable[[int, ItemResult], None]


def item_of(timer: CreateTimer | Mapping[str, Any]) -> Item:
    """Gives the timer a key, if it has none. InvalidArgument: it can't be sent."""
    body = object_json("timer", timer, CreateTimer)
    automatic = "idempotencyKey" not in body
    if automatic:
        body["idempotencyKey"] = new_key()
    return raw_item(body, automatic=automatic)


def raw_item(body: dict[str, JsonValue], *, automatic: bool = False) -> Item:
    """A timer whose members nobody here knows: the server names what is wrong. InvalidArgument: it can't be sent."""
    place = Place(str(body.get("namespace", "")), str(body.get("id", "")))
    return Item(place, body, len(encode(body)) + 1, automatic)


def chunks(timers: Iterable[CreateTimer | Mapping[str, Any]], settle: Settle) -> Iterator[list[tuple[int, Item]]]:
    """The timers in lists that fit a request each, with their places among all. What can't be sent is settled."""
    chunk: list[tuple[int, Item]] = []
    size_bytes = ENVELOPE_BYTES
    for index, timer in enumerate(timers):
        try:
            item = item_of(timer)
        except InvalidArgument as error:
            settle(index, ItemResult(error=error))
            continue
        if chunk and (len(chunk) == ITEMS_MAX or size_bytes + item.size_bytes > BYTES_MAX):
            yield chunk
            chunk, size_bytes = [], ENVELOPE_BYTES
        chunk.append((index, item))
        size_bytes += item.size_bytes
    if chunk:
        yield chunk


def create_many(
    session: Session, timers: Iterable[CreateTimer | Mapping[str, Any]], options: Options | None = None
) -> Steps[list[ItemResult]]:
    """The results, in the timers' order. A failed request is the result of all its timers, and the next one follows."""
    results: dict[int, ItemResult] = {}
    for chunk in chunks(timers, results.__setitem__):

        def settle(index: int, result: ItemResult, chunk: list[tuple[int, Item]] = chunk) -> None:
            results[chunk[index][0]] = result

        yield from create_chunk(session, [item for _, item in chunk], settle, options)
    return [results[index] for index in range(len(results))]


def replay(session: Session, wanted: ReplayTimers, options: Options | None = None) -> Steps[list[ItemResult]]:
    """The results, in the order of the ids."""
    reply = yield from session.perform(Call("replayTimers", wanted.to_json(), safe=False), options)
    return read_answer(reply, lambda answer: _results_of(answer, len(wanted.ids)))


def create_chunk(
    session: Session, items: Sequence[Item], settle: Settle, options: Options | None = None
) -> Steps[None]:
    """One request for each owner, if owners are asked directly, else one. Each timer is settled once; what the server or
    the network did is not raised."""
    groups: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        url = "" if session.router is None else (yield from session.router.base_for(item.place, session.read))
        groups.setdefault(url, []).append(index)
    for group in groups.values():
        yield from _create(session, items, group, settle, options or session.options)


def _create(
    session: Session, items: Sequence[Item], waiting: list[int], settle: Settle, limits: Options
) -> Steps[None]:
    """Timers that are refused for the moment go again, without those that have a result."""
    started = session.monotonic()
    retry = paid = 0
    while True:
        elapsed_s = session.monotonic() - started
        left = replace(limits, timeout_s=max(limits.timeout_s - elapsed_s, 0.001))
        try:
            answered = yield from _request(session, [items[i] for i in waiting], retry, elapsed_s, left)
        except (ApiError, TransportError) as error:  # after all its retries
            for index in waiting:
                settle(index, ItemResult(error=error))
            return
        refused = {i: r.error for i, r in zip(waiting, answered, strict=True) if r.error and is_repeated(r.error)}
        pause_s = None
        if refused and limits.allow(retry):
            pause_s = retry_delay(retry, None, started + limits.timeout_s - session.monotonic(), session.uniform)
        if pause_s is not None and any(map(maybe_done, refused.values())):
            if session.budget.spend():
                paid += 1
            else:
                pause_s = None
        for index, result in zip(waiting, answered, strict=True):
            if pause_s is None or index not in refused:
                settle(index, result)
        if pause_s is None:
            if paid and not refused:
                session.budget.earn(paid, retry)
            return
        waiting = list(refused)
        yield Sleep(pause_s)
        retry += 1


def _request(
    session: Session, items: Sequence[Item], retry: int, elapsed_s: float, options: Options
) -> Steps[list[ItemResult]]:
    first = retry == 0 and all(item.automatic for item in items)
    call = Call(
        "batchCreateTimers",
        {"timers": [remaining(item.body, elapsed_s) if retry else item.body for item in items]},
        first_headers=FIRST_TRY if first else {},
        # Retries go to the client's own URL.
        place=None if retry else items[0].place,
    )
    reply = yield from session.perform(call, options)
    answered = read_answer(reply, lambda answer: _results_of(answer, len(items)))
    if session.router is not None:
        for item, result in zip(items, answered, strict=True):
            if result.timer is not None:
                session.router.check(item.place, result.timer.shard_id)
    return answered


def _results_of(answer: Mapping[str, Any], number: int) -> list[ItemResult]:
    """ValueError: there is not one for each timer."""
    results = [_result_of(BatchResult.from_json(each)) for each in answer["results"]]
    if len(results) != number:
        raise ValueError(f"{len(results)} results of {number} timers")
    return results


def _result_of(answer: BatchResult) -> ItemResult:
    if answer.error is not None:
        return ItemResult(error=error_of_item(answer.error))
    if answer.timer is None:
        raise ValueError("a result has neither a timer nor an error")
    return ItemResult(timer=answer.timer, existing=bool(answer.existing), replayed=bool(answer.replayed))

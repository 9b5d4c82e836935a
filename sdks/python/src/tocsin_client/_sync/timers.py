# Made from _async/timers.py by unasync.py; edit that.
"""Timers."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tocsin_client._sync.batcher import Batcher
from tocsin_client._sync.pages import Pages
from tocsin_client._sync.part import Part
from tocsin_client._core import flows
from tocsin_client._core.batches import ItemResult, create_many, replay
from tocsin_client._core.steps import Steps
from tocsin_client._generated.models import (
    CallbackMethod,
    CreateTimer,
    Explanation,
    Hook,
    ListTimers,
    OnConflict,
    RawBody,
    ReplayTimers,
    RetryPolicy,
    RunAnswer,
    RunPageAnswer,
    Timer,
    TimerHistory,
    TimerName,
    TimerPage,
    TimerStatus,
    UpdateTimer,
)
from tocsin_client._values import UNSET, Duration, Instant, JsonValue, Unset


class Timers(Part):
    """Timers: each calls a URL at an instant."""

    def create(
        self,
        namespace: str,
        id: str,
        callback_url: str,
        *,
        execute_at: Instant | Unset = UNSET,
        delay: Duration | Unset = UNSET,
        payload: JsonValue | Unset = UNSET,
        body: RawBody | Mapping[str, Any] | Unset = UNSET,
        method: CallbackMethod | Unset = UNSET,
        headers: Mapping[str, str] | Unset = UNSET,
        retry_policy: RetryPolicy | Mapping[str, Any] | Unset = UNSET,
        callback_timeout_seconds: float | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        expire_after: Duration | Unset = UNSET,
        description: str | Unset = UNSET,
        flow_key: str | Unset = UNSET,
        credential: str | Unset = UNSET,
        on_failure: Hook | Mapping[str, Any] | Unset = UNSET,
        on_success: Hook | Mapping[str, Any] | Unset = UNSET,
        on_recovery: Hook | Mapping[str, Any] | Unset = UNSET,
        on_conflict: OnConflict | Unset = UNSET,
        max_delay: Duration | Unset = UNSET,
        collect: int | Unset = UNSET,
        idempotency_key: str | Unset = UNSET,
    ) -> Timer:
        """Creates a timer; it is durable when this returns. Give one of `execute_at` and `delay`, and at most one of
        `payload` and `body`. A pending timer with the same id is replaced, unless `on_conflict` asks otherwise.

        If an answer is lost, the request is repeated with the same idempotency key: one call creates one timer, which
        fires once. Give a key of your own if your program itself may repeat the call, as after a crash.

        With `on_conflict="debounce"`, creates of one id that follow one another are one call, `delay` after the latest and at
        the latest `max_delay` after the first; with `collect`, its payload is an array of theirs. CollectionFull: it has
        no room for another one until it has been made.
        """
        timer = CreateTimer(
            namespace=namespace,
            id=id,
            callback_url=callback_url,
            execute_at=execute_at,
            delay=delay,
            payload=payload,
            body=body,
            method=method,
            headers=headers,
            retry_policy=retry_policy,
            callback_timeout_seconds=callback_timeout_seconds,
            tags=tags,
            expire_after=expire_after,
            description=description,
            flow_key=flow_key,
            credential=credential,
            on_failure=on_failure,
            on_success=on_success,
            on_recovery=on_recovery,
            on_conflict=on_conflict,
            max_delay=max_delay,
            collect=collect,
            idempotency_key=idempotency_key,
        )
        return self._run(flows.create_timer(self._session, timer, self._options))

    def get(self, namespace: str, timer_id: str) -> Timer:
        """The timer, pending or finished. TimerNotFound: there is none, or it is no longer retained."""
        name = TimerName(namespace=namespace, timer_id=timer_id)
        return self._run(self._ask("getTimer", Timer.from_json, name.to_json()))

    def update(
        self,
        namespace: str,
        timer_id: str,
        *,
        execute_at: Instant | Unset = UNSET,
        delay: Duration | Unset = UNSET,
        callback_url: str | Unset = UNSET,
        payload: JsonValue | Unset = UNSET,
        body: RawBody | Mapping[str, Any] | Unset = UNSET,
        method: CallbackMethod | Unset = UNSET,
        headers: Mapping[str, str] | None | Unset = UNSET,
        retry_policy: RetryPolicy | Mapping[str, Any] | None | Unset = UNSET,
        callback_timeout_seconds: float | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        expire_after: Duration | None | Unset = UNSET,
        description: str | None | Unset = UNSET,
        flow_key: str | None | Unset = UNSET,
        credential: str | None | Unset = UNSET,
        on_failure: Hook | Mapping[str, Any] | None | Unset = UNSET,
        on_success: Hook | Mapping[str, Any] | None | Unset = UNSET,
        on_recovery: Hook | Mapping[str, Any] | None | Unset = UNSET,
    ) -> Timer:
        """Changes the given fields of a pending timer; None removes `headers`, `retry_policy`, `expire_after`,
        `description`, `flow_key`, `credential` and the hooks. TimerNotPending: it has finished."""
        change = UpdateTimer(
            namespace=namespace,
            timer_id=timer_id,
            execute_at=execute_at,
            delay=delay,
            callback_url=callback_url,
            payload=payload,
            body=body,
            method=method,
            headers=headers,
            retry_policy=retry_policy,
            callback_timeout_seconds=callback_timeout_seconds,
            tags=tags,
            expire_after=expire_after,
            description=description,
            flow_key=flow_key,
            credential=credential,
            on_failure=on_failure,
            on_success=on_success,
            on_recovery=on_recovery,
        )
        return self._run(flows.update_timer(self._session, change, self._options))

    def delete(self, namespace: str, timer_id: str) -> None:
        """Cancels a pending timer; an attempt in flight may still arrive. TimerNotPending: it has finished."""
        name = TimerName(namespace=namespace, timer_id=timer_id)
        self._run(flows.delete_timer(self._session, name, self._options))

    def list(
        self,
        namespace: str,
        *,
        status: TimerStatus | Sequence[TimerStatus] | Unset = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        id_prefix: str | Unset = UNSET,
        execute_after: Instant | Unset = UNSET,
        execute_before: Instant | Unset = UNSET,
        explain: bool | Unset = UNSET,
        limit: int | Unset = UNSET,
    ) -> Pages[Timer]:
        """All timers that match, of one namespace or of all that the key may see (`*`), ordered by `execute_at`; `limit`
        is the size of a page. With `explain` those that are due have their `explanation`: what they do or wait for."""

        def fetch(cursor: str | None) -> Steps[tuple[list[Timer], str | None]]:
            query = ListTimers(
                namespace=namespace,
                status=[status] if isinstance(status, str) else status,
                tags=tags,
                id_prefix=id_prefix,
                execute_after=execute_after,
                execute_before=execute_before,
                explain=explain,
                limit=limit,
                cursor=UNSET if cursor is None else cursor,
            )
            page = yield from self._ask("listTimers", TimerPage.from_json, query.to_json())
            return page.timers, page.next_cursor

        return Pages(self._runner, fetch)

    def explain(self, namespace: str, timer_id: str) -> Explanation:
        """Where the timer is now, and what it waits for."""
        name = TimerName(namespace=namespace, timer_id=timer_id)
        return self._run(self._ask("explainTimer", Explanation.from_json, name.to_json()))

    def history(self, namespace: str, timer_id: str, *, limit: int | Unset = UNSET) -> Pages[RunAnswer]:
        """The timer's runs, newest first; `limit` is the size of a page."""

        def fetch(cursor: str | None) -> Steps[tuple[list[RunAnswer], str | None]]:
            after = UNSET if cursor is None else cursor
            query = TimerHistory(namespace=namespace, timer_id=timer_id, limit=limit, cursor=after)
            page = yield from self._ask("timerHistory", RunPageAnswer.from_json, query.to_json())
            return page.runs, page.next_cursor

        return Pages(self._runner, fetch)

    def create_many(self, timers: Iterable[CreateTimer | Mapping[str, Any]]) -> builtins.list[ItemResult]:
        """Creates any number of timers; the results are in their order. One that can't be created does not affect the
        others, and its result has the error. Each has an idempotency key, as in `create`."""
        return self._run(create_many(self._session, timers, self._options))

    def replay(
        self,
        namespace: str,
        ids: Sequence[str],
        *,
        execute_at: Instant | Unset = UNSET,
        delay: Duration | Unset = UNSET,
        set_url: str | Unset = UNSET,
        set_headers: Mapping[str, str] | None | Unset = UNSET,
    ) -> builtins.list[ItemResult]:
        """Fires finished timers again, at most 1,000, each under the webhook-id of its latest run: at once, or at the given
        instant. The results are in the order of the ids; one that can't be replayed does not affect the others. A lost
        answer is not followed by a retry: TransportError with `maybe_done`."""
        wanted = ReplayTimers(
            namespace=namespace,
            ids=ids,
            execute_at=execute_at,
            delay=delay,
            set_url=set_url,
            set_headers=set_headers,
        )
        return self._run(replay(self._session, wanted, self._options))

    def batcher(self, *, block: bool = True) -> Batcher:
        """Collects single creates into requests; close it, or use it in a `with` statement. While 10,000 timers wait,
        adding another blocks, or raises BatcherFull if `block` is False."""
        return Batcher(self._runner, block=block)

    def wait(self, namespace: str, timer_id: str, *, timeout: Duration | None = None) -> Timer:
        """Returns the timer once it has finished. WaitTimeout: that took longer than so many seconds."""
        name = TimerName(namespace=namespace, timer_id=timer_id)
        return self._run(flows.wait_for_timer(self._session, name, timeout, self._options))

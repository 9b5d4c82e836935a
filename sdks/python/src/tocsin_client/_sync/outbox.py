# Made from _async/outbox.py by unasync.py; edit that.
"""Writes timers to a table in the user's own transactions, and creates them from there."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tocsin_client._sync.stopping import Background, Stop
from tocsin_client._core.batches import Item, ItemResult, create_chunk
from tocsin_client._core.outbox import (
    DIALECTS,
    REQUEST_TIMEOUT_S,
    ROWS_MAX,
    TABLE,
    Dialect,
    Drained,
    OutboxTable,
    Outcome,
    Row,
    Taken,
    is_final,
    now_us,
    refused_together,
    requests,
)
from tocsin_client._error_bases import InvalidArgument
from tocsin_client._generated.models import CallbackMethod, CreateTimer, Hook, OnConflict, RawBody, RetryPolicy
from tocsin_client._open_transactions import execute_in, dialect_of
from tocsin_client._values import UNSET, Duration, Instant, JsonValue, Unset, seconds_of
from tocsin_client.receiver._databases import Database, Execute

if TYPE_CHECKING:
    from tocsin_client._sync.client import Client

Tx = TypeVar("Tx")

_LOG = logging.getLogger("tocsin_client.outbox")
#: After a round that failed: doubled up to the longest with each further one.
_FIRST_PAUSE_S, _PAUSE_S_MAX = 1.0, 30.0


class Outbox:
    """Writes rows in the transaction that a connection has open. See `outbox`."""

    def __init__(self, execute: Execute, table: OutboxTable) -> None:
        self._execute = execute
        self._table = table

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
        on_failure: Hook | Mapping[str, Any] | Unset = UNSET,
        on_success: Hook | Mapping[str, Any] | Unset = UNSET,
        on_recovery: Hook | Mapping[str, Any] | Unset = UNSET,
        on_conflict: OnConflict | Unset = UNSET,
        max_delay: Duration | Unset = UNSET,
        collect: int | Unset = UNSET,
    ) -> str:
        """Writes a timer to create as a row; returns the row's id, which is the timer's idempotency key. If the transaction
        commits, a drain creates the timer; if it rolls back, there was none. The arguments are those of `timers.create`;
        `delay` counts from this call. InvalidArgument: the timer can't be sent."""
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
            on_failure=on_failure,
            on_success=on_success,
            on_recovery=on_recovery,
            on_conflict=on_conflict,
            max_delay=max_delay,
            collect=collect,
        )
        statement, parameters = self._table.insert(timer, now_us())
        self._execute(statement, parameters)
        return str(parameters[0])


def outbox(connection: Any, *, table: str = TABLE) -> Outbox:
    """Writes timers in the transaction that the connection has open, whatever opened it.

    `connection` is a connection of your driver, a connection or session of SQLAlchemy, or a function
    `execute(statement, parameters)`, whose statements have `?` for parameters. InvalidArgument: no transaction is open and
    the connection is in autocommit mode; or `table` is not a table's name.
    """
    return Outbox(execute_in(connection), OutboxTable(table))


class Drain(Generic[Tx]):
    """Creates the timers whose rows are committed, oldest first, and deletes these rows.

    `database` is where the table is, as with `Dedup`. Any number of drains may run at once, in one process or several. A
    timer's rows are sent one after another. What the server refuses for good stays in the table with its `dead_reason`.

    Each row is sent with its id as idempotency key, so that a row that is sent again, after a crash or a lost answer, fires
    once. Idempotency keys expire 24 hours after the timer has ended: a row that is sent again later fires twice.
    """

    def __init__(
        self,
        client: Client,
        database: Database[Tx],
        *,
        table: str = TABLE,
        dialect: Dialect | None = None,
        rows_max: int = ROWS_MAX,
    ) -> None:
        if dialect is not None and dialect not in DIALECTS:
            raise InvalidArgument(f"dialect: {dialect!r} is unknown; give one of {', '.join(DIALECTS)}")
        if not 1 <= rows_max <= 1_000:
            raise InvalidArgument(f"rows_max: {rows_max!r} is not between 1 and 1000, which fit a request")
        self._client = client.with_options(timeout=REQUEST_TIMEOUT_S)
        self._database = database
        self._table = OutboxTable(table)
        self._dialect = dialect
        self._rows_max = rows_max

    def create_table(self) -> None:
        """Creates the table if it isn't there."""

        def create(tx: Tx, execute: Execute) -> None:
            execute(self._table.create(self._dialect or dialect_of(tx)), ())

        self._database.transaction(create)

    def once(self) -> Drained:
        """Creates the timers of at most `rows_max` rows. What the server or the network does is not raised, errors of the
        database are."""
        taken = self._database.transaction(self._take)
        if not taken.rows:
            return Drained()
        outcome = Outcome()
        for batch in requests(taken, now_us(), outcome):
            self._send(batch, outcome)

        def settle(tx: Tx, execute: Execute) -> None:
            dialect = self._dialect or dialect_of(tx)
            for statement, parameters in self._table.settle(dialect, taken, outcome, now_us()):
                execute(statement, parameters)

        self._database.transaction(settle)
        return outcome.drained()

    def run(self, stop: Stop | None = None, *, every: Duration = 0.5) -> None:
        """Drains until `stop` is set. It looks for rows at this interval, and while there are some without a pause. While the
        server or the database is away, pauses grow up to 30 s."""
        stop, every_s, failures = stop or Stop(), seconds_of("every", every), 0
        while not stop.is_set():
            try:
                drained = self.once()
                failed: Exception | None = drained.unavailable
            except Exception as error:  # noqa: BLE001 (of any driver)
                drained, failed = Drained(), error
            if failed is not None:
                pause_s = min(_FIRST_PAUSE_S * 2.0 ** min(failures, 10), _PAUSE_S_MAX)
                failures += 1
                _LOG.warning("outbox not drained, next try in %g s: %s: %s", pause_s, type(failed).__name__, failed)
                stop.wait(pause_s)
                continue
            failures = 0
            if drained.dead:
                _LOG.error("outbox rows dead: %d; see dead_reason in the table", drained.dead)
            if not drained.found:
                stop.wait(every_s)

    def start(self, *, every: Duration = 0.5) -> Background:
        """Runs it in the background: `with drain.start():`. See `run`."""
        every_s = seconds_of("every", every)
        return Background(lambda stop: self.run(stop, every=every_s))

    def _take(self, tx: Tx, execute: Execute) -> Taken:
        steps = self._table.take(self._dialect or dialect_of(tx), self._rows_max, now_us())
        try:
            statement = next(steps)
            while True:
                statement = steps.send(execute(*statement))
        except StopIteration as done:
            taken: Taken = done.value
            return taken

    def _send(self, batch: list[tuple[Row, Item]], outcome: Outcome) -> None:
        """Has the server create the timers of one request."""
        if outcome.unavailable is not None:
            outcome.waiting.extend(row for row, _ in batch)
            return
        found: dict[int, ItemResult] = {}
        runner = self._client._runner
        items = [item for _, item in batch]
        runner.run(create_chunk(runner.session, items, found.__setitem__, runner.options))
        results = [found[index] for index in range(len(batch))]
        refused = refused_together(results)
        if refused is not None and is_final(refused) and len(batch) > 1:
            # One of them spoils the request: each gets an answer of its own.
            for each in batch:
                self._send([each], outcome)
            return
        if refused is not None and not is_final(refused):
            outcome.unavailable = refused
        for (row, _), result in zip(batch, results, strict=True):
            outcome.add(row, result)

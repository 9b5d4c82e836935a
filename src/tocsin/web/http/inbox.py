"""The HTTP requests and responses about dead rows of the inbox: their structs, and what they do, with their entries in the
audit trail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Annotated, TypeVar

from msgspec import UNSET, UnsetType

from tocsin.model.audit import AuditAction, Detail
from tocsin.model.errors import ConfigError, FieldError, InvalidInput, OutcomeUnknown, StoreError
from tocsin.model.instants import format_instant
from tocsin.model.validation import InputRules
from tocsin.ports.audit import Actor, AuditLog
from tocsin.ports.inbox import Backlog, DeadRows, InboxTable, ListedRow, NodeInbox
from tocsin.web.http import constraints as limits
from tocsin.web.http.constraints import bad_fields, refuse_bad_fields
from tocsin.web.http.errors import InboxUnavailable, RouteNotFound
from tocsin.web.http.optional import or_default, or_none
from tocsin.web.http.wire import Cursor, Instant, NamespaceName, RequestStruct, ResponseStruct, about, page_of

T = TypeVar("T")

#: Ids of a request.
_IDS_MAX = 1_000
#: Rows that a request without ids changes: some seconds of work.
ROWS_MAX = 10_000
#: Of the column.
_ID_CHARS_MAX = 36
#: How long a request waits for the database, which may hang, and which answers a drain meanwhile.
_PATIENCE_S = 20.0
#: How long a request begins further transactions, so that the last one has time enough to end.
_CHANGES_S = 5.0
#: Ids that an entry of the audit trail has; it has the number of all.
_AUDITED_IDS_MAX = 20


class ListInbox(RequestStruct):
    """Which dead rows to list."""

    namespace: Annotated[NamespaceName | UnsetType, about("Only rows of this namespace.")] = UNSET
    limit: Annotated[int | UnsetType, page_of("rows"), limits.ROWS] = UNSET
    cursor: Cursor | UnsetType = UNSET


class ChangeInbox(RequestStruct):
    """Which dead rows are meant: those with these ids, those of a namespace, or all."""

    ids: Annotated[
        list[str] | UnsetType,
        about("The id of each, up to 1,000.", ["0197a3c0-0000-7000-8000-000000000001"]),
        limits.unique(_IDS_MAX, limits.text_schema(_ID_CHARS_MAX)),
    ] = UNSET
    namespace: Annotated[NamespaceName | UnsetType, about("All dead rows of this namespace.")] = UNSET
    all: Annotated[bool | UnsetType, about("With `true` and no other field: all dead rows.")] = UNSET


class DeadRow(ResponseStruct, kw_only=True):
    """A row that is refused for good, and waits for somebody to replay or delete it."""

    id: Annotated[str, about("The row's id.", "0197a3c0-0000-7000-8000-000000000001")]
    namespace: Annotated[str, about("The namespace of the timer that it asks for.", "orders")]
    timer_id: Annotated[str, about("That timer's id.", "remind-17")]
    created_at: Annotated[Instant, about("When the row was written.")]
    dead_reason: Annotated[
        str, about("The error code, and why it was refused.", "NAMESPACE_NOT_FOUND: no namespace 'orders'")
    ]


class DeadRowPage(ResponseStruct, omit_defaults=True):
    """A page of dead rows, the oldest first."""

    rows: list[DeadRow]
    next_cursor: Annotated[str | UnsetType, about("The cursor of the next page; absent on the last page.")] = UNSET


_More = Annotated[
    bool,
    about("Whether there may be more: a request changes up to 10,000 rows, as many as it can in seconds. Repeat it."),
]


class ReplayedRows(ResponseStruct):
    """What is tried again."""

    replayed: Annotated[int, about("How many rows.", 12)]
    more: _More


class DeletedRows(ResponseStruct):
    """What was deleted."""

    deleted: Annotated[int, about("How many rows.", 12)]
    more: _More


class InboxRequests:
    """What requests do, from the API and the pages. Every method raises RouteNotFound without an inbox, InboxUnavailable if
    its database can't be asked, and InvalidInput with all bad fields of the request."""

    def __init__(self, inbox: NodeInbox | None, rules: InputRules, audit: AuditLog) -> None:
        self._inbox, self._rules, self._audit = inbox, rules, audit

    async def backlog(self) -> Backlog:
        """How many rows wait and how many are dead, among the oldest."""
        return await self._ask(lambda table: table.backlog())

    async def replay(self, sent: ChangeInbox, actor: Actor) -> ReplayedRows:
        """Has dead rows tried again."""
        return ReplayedRows(*await self._change(AuditAction.INBOX_REPLAYED, lambda t: t.revive, sent, actor))

    async def delete(self, sent: ChangeInbox, actor: Actor) -> DeletedRows:
        """Deletes dead rows."""
        return DeletedRows(*await self._change(AuditAction.INBOX_DELETED, lambda t: t.discard, sent, actor))

    async def _change(
        self,
        action: AuditAction,
        change: Callable[[InboxTable], Callable[[DeadRows], AsyncGenerator[int, None]]],
        sent: ChangeInbox,
        actor: Actor,
    ) -> tuple[int, bool]:
        """Makes a change, and writes what became of it into the trail, also if it ends in the middle. Returns how many rows
        were changed, and whether there may be more."""
        wanted, number = self._wanted(sent), 0
        # Of the transaction that is under way; only these errors mean that it had no effect.
        unknown, more = False, False
        ends_s = asyncio.get_running_loop().time() + _CHANGES_S
        try:
            async with self._table() as table:
                try:
                    async with aclosing(change(table)(wanted)) as changes:
                        async for changed in changes:
                            number += changed
                            if more := asyncio.get_running_loop().time() >= ends_s:
                                break
                except BaseException as error:
                    unknown = isinstance(error, OutcomeUnknown) or not isinstance(error, StoreError | ConfigError)
                    raise
        except InboxUnavailable as error:
            if not number:
                raise
            raise InboxUnavailable(f"{error}; {number} rows were changed before") from error
        finally:
            await self._record(action, actor, wanted, number, unknown=unknown)
        return number, more or (not wanted.ids and number >= wanted.rows_max)

    def _wanted(self, sent: ChangeInbox) -> DeadRows:
        errors = bad_fields(sent, self._rules)
        if sum(each is not UNSET for each in (sent.ids, sent.namespace, sent.all)) != 1 or sent.all is False:
            errors.append(
                FieldError("ids", "conflicts with the other fields, or all are missing; send ids, namespace or all")
            )
        elif not isinstance(sent.ids, UnsetType) and not 1 <= len(sent.ids) <= _IDS_MAX:
            errors.append(FieldError("ids", f"has {len(sent.ids)} items; send 1 to {_IDS_MAX}"))
        if errors:
            raise InvalidInput(*errors)
        namespace = or_none(sent.namespace)
        return DeadRows(namespace, or_default(sent.ids, ()), ROWS_MAX)

    async def _ask(self, question: Callable[[InboxTable], Awaitable[T]]) -> T:
        async with self._table() as table:
            return await question(table)

    @asynccontextmanager
    async def _table(self) -> AsyncIterator[InboxTable]:
        """The table, for as long as a request waits for it; with its errors as those of a request."""
        if self._inbox is None:
            raise RouteNotFound("this server has no inbox: inbox.url is not set")
        try:
            async with asyncio.timeout(_PATIENCE_S):
                yield self._inbox.table
        except TimeoutError:
            raise InboxUnavailable(f"{self._inbox.table.place}: no answer within {_PATIENCE_S:.0f} s") from None
        except (StoreError, ConfigError) as error:
            raise InboxUnavailable(str(error)) from error

    async def _record(self, action: AuditAction, actor: Actor, wanted: DeadRows, number: int, *, unknown: bool) -> None:
        if self._inbox is None or not (number or unknown):
            return
        of: dict[str, Detail] = {"namespace": wanted.namespace, "ids": list(wanted.ids[:_AUDITED_IDS_MAX])}
        details = {name: value for name, value in of.items() if value}
        outcome: dict[str, Detail] = {"outcome": "unknown"} if unknown else {}
        await self._audit.write(action, actor, self._inbox.source, {"count": number, **details, **outcome})

    # Last in the class, because it hides the built-in name in what follows.
    async def list(self, sent: ListInbox) -> DeadRowPage:
        """Dead rows, the oldest first."""
        refuse_bad_fields(sent, self._rules)
        namespace = or_none(sent.namespace)
        after = or_default(sent.cursor, "")
        limit = or_default(sent.limit, limits.ROWS_DEFAULT)
        found = await self._ask(lambda table: table.rows(namespace, limit, dead=True, after=after))
        return DeadRowPage([_row_answer(row) for row in found], found[-1].id if len(found) == limit else UNSET)


def _row_answer(row: ListedRow) -> DeadRow:
    return DeadRow(
        id=row.id,
        namespace=row.namespace,
        timer_id=row.timer_id,
        created_at=format_instant(row.created_at),
        dead_reason=row.dead_reason or "",
    )

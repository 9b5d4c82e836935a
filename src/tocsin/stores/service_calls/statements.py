"""Statements of the agent's stores: one text for both databases, over many rows at once.

In a text, `:name` is a value. `GIVEN` is the caller's rows as a relation with the name `given`, in PostgreSQL one array per
column, in SQLite one JSON text, or one execution per row where that is faster. So the text does not depend on the number of
rows, which keeps it in the drivers' caches and below every limit on values. Locks of rows are for PostgreSQL only, and
`INDEXED BY` for SQLite only, whose planner also keeps the order of a CROSS JOIN.

The name of a column or value decides how its values are stored: instants, JSON, enumerations and numbers that the reference
schema stores as text.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from tocsin.model.hooks import Hooks
from tocsin.model.instants import US_PER_SECOND, second_text, second_us
from tocsin.model.retry import RetryPolicy
from tocsin.ports.bus import Envelope
from tocsin.service_calls.messages import CallStatus, RequestSpec
from tocsin.service_calls.ports import CallOutcome

T = TypeVar("T")

Row = tuple[Any, ...]

#: The columns that identify a service call.
KEY = ("tenant_id", "service_call_id")


class Session(Protocol):
    """A connection in a transaction. `postgresql`: otherwise it is SQLite's, whose methods never wait."""

    postgresql: bool

    async def rows(self, sql: str, values: Sequence[Any]) -> Sequence[Row]:
        """The resulting rows."""

    async def count(self, sql: str, values: Sequence[Any]) -> int:
        """How many rows the statement changed."""


#: What is done in a transaction. It awaits nothing but the session's methods.
Work = Callable[[Session], Coroutine[Any, Any, T]]


class Database(Protocol):
    """Transactions. The work may run in a thread of the database, may be repeated from the start after a conflict, and must
    have no other effects."""

    @abstractmethod
    async def write(
        self, work: Work[T], committed: Callable[[], None] | None = None, unknown: Callable[[], None] | None = None
    ) -> T:
        """Returns the result of `work` once it is durable. If `work` raises, its changes are rolled back and its error
        is raised.

        Raises StoreUnavailable if nothing was written and OutcomeUnknown if that is not known. `committed` is called on
        the event loop after the commit, `unknown` instead of it if the outcome is unknown; both in the order of
        commits, even if the caller was cancelled.
        """

    @abstractmethod
    async def read(self, work: Work[T]) -> T:
        """Returns the result of `work`, which reads one snapshot of the database."""


# ---------------------------------------------------------------------- how values are stored


class Kind(NamedTuple):
    """The values of a column: PostgreSQL's type of it, and how they become the driver's values and the other way round."""

    type: str = "text"
    encode: Callable[[Any], Any] | None = None
    decode: Callable[[Any], Any] | None = None


def json_of(type_: Any) -> Kind:
    """Values of one type, stored as the JSON text that msgspec writes."""
    encode, decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(type_).decode
    return Kind(
        "text",
        lambda value: None if value is None else encode(value).decode(),
        lambda text: None if text is None else decode(text),
    )


def to_text(instant_us: int | None) -> str | None:
    """An instant in SQLite: text of fixed width, which sorts by time. `2027-01-31T12:00:00.000000Z`."""
    if instant_us is None:
        return None
    return f"{second_text(instant_us // US_PER_SECOND)}.{instant_us % US_PER_SECOND:06d}Z"


def from_text(text: str | None) -> int | None:
    """Microseconds of a text in the fixed form."""
    return None if text is None else second_us(text[:19]) + int(text[20:26])


def _without_nul(text: str | None) -> str | None:
    return text.replace("\0", "\ufffd") if text is not None and "\0" in text else text


_TEXT, _NUMBER, _HEADERS = Kind(), Kind("bigint"), json_of(dict[str, str])
#: Text from outside, which may contain NUL characters. PostgreSQL cannot store them, so both databases store the replacement
#: character instead.
_FREE_TEXT = Kind("text", _without_nul)
#: Calling the class of an enumeration costs ten times as much as a look-up.
_STATUS = Kind("text", lambda member: None if member is None else str(member), {s.value: s for s in CallStatus}.get)
_DIGITS = Kind("text", lambda n: None if n is None else str(n), lambda digits: None if digits is None else int(digits))
#: PostgreSQL's connections exchange microseconds (`tocsin.stores.postgresql.connection`).
_INSTANT = {True: Kind("timestamptz"), False: Kind("text", to_text, from_text)}
_KINDS = {
    "status": _STATUS,
    "status_before": _STATUS,
    "request_spec": json_of(RequestSpec),
    "outcome_meta": json_of(CallOutcome),
    "retry_policy": json_of(RetryPolicy),
    "hooks": json_of(Hooks),
    # Whoever opens a message checks it: a damaged one must not hide the others that are read with it.
    "event_payload": Kind("text", lambda raw: bytes(raw).decode(), lambda text: msgspec.Raw(text.encode())),
    "envelope": json_of(Envelope),
    "request_headers": _HEADERS,
    "response_headers": _HEADERS,
    "response_status": _DIGITS,
    **dict.fromkeys(("id", "timestamp_ms", "executions", "attempts"), _NUMBER),
    **dict.fromkeys(
        ("name", "request_url", "request_body", "response_body", "error_message", "last_error"), _FREE_TEXT
    ),
}


def _kind(name: str, *, postgresql: bool) -> Kind:
    return _INSTANT[postgresql] if name.endswith("_at") else _KINDS.get(name, _TEXT)


# ---------------------------------------------------------------------- forms of a statement

_LOCKS = re.compile(r" FOR (NO KEY UPDATE|KEY SHARE|UPDATE)( SKIP LOCKED)?")
_INDEX = re.compile(r" INDEXED BY \w+")
_VALUE = re.compile(r"(?<!:):([a-z_][a-z0-9_]*)")
_GIVEN_COLUMN = re.compile(r"\bgiven\.([a-z_]+)")


class Form(NamedTuple):
    """A statement as one of the databases gets it."""

    postgresql: bool
    text: str
    #: Names of the values, in the driver's order. Those of the given rows begin with `given_`.
    values: tuple[str, ...]
    #: How values, given columns and resulting columns are converted.
    scalars: Mapping[str, Callable[[Any], Any] | None]
    given: Sequence[Callable[[Any], Any] | None]
    results: Sequence[Callable[[Any], Any] | None]


def _numbered(sql: str, *, postgresql: bool) -> tuple[str, tuple[str, ...]]:
    """The text with $1, $2, … or ?1, ?2, … for each name, and the names in this order."""
    names: dict[str, int] = {}
    mark = "$" if postgresql else "?"
    text = _VALUE.sub(lambda found: f"{mark}{names.setdefault(found[1], len(names) + 1)}", sql)
    return text, tuple(names)


def _converted(rows: Sequence[Row], convert: Sequence[Callable[[Any], Any] | None]) -> list[Sequence[Any]]:
    """The rows' columns, converted."""
    return [
        column if function is None else [function(value) for value in column]
        for column, function in zip(zip(*rows, strict=True), convert, strict=True)
    ]


class _Statement:
    """A statement with its form for each database."""

    def __init__(
        self,
        sql: str,
        *,
        given: Sequence[str] = (),
        results: Sequence[str] = (),
        kinds: Mapping[str, Kind] | None = None,
        sqlite: str | None = None,
    ) -> None:
        """`given` and `results` name the columns of the given and of the resulting rows. `kinds` replaces the kinds of some
        of these, `sqlite` the text for SQLite."""
        self.given = tuple(given)
        self._results = tuple(results)
        self._kinds = kinds or {}
        self._sql = {True: _INDEX.sub("", sql), False: _LOCKS.sub("", sqlite or sql)}
        self._forms: dict[bool, Form] = {}

    def form(self, postgresql: bool) -> Form:
        """The statement for PostgreSQL or for SQLite."""
        made = self._forms.get(postgresql)
        if made is None:
            made = self._forms[postgresql] = self._made(postgresql)
        return made

    def _made(self, postgresql: bool) -> Form:
        text, values = _numbered(self._with_given(self._sql[postgresql], postgresql), postgresql=postgresql)
        scalars = [name for name in values if not name.startswith("given")]
        return Form(
            postgresql,
            text,
            values,
            {name: self._kind(name, postgresql).encode for name in scalars},
            [self._kind(name, postgresql).encode for name in self.given],
            [self._kind(name, postgresql).decode for name in self._results],
        )

    def _kind(self, name: str, postgresql: bool) -> Kind:
        return self._kinds.get(name) or _kind(name, postgresql=postgresql)

    def _with_given(self, sql: str, postgresql: bool) -> str:
        if postgresql:
            arrays = ", ".join(f":given_{name}::{self._kind(name, True).type}[]" for name in self.given)
            relation = f"unnest({arrays}) AS given ({', '.join(self.given)})"
        else:
            columns = ", ".join(f"value ->> '$[{place}]' AS {name}" for place, name in enumerate(self.given))
            relation = f"(SELECT {columns} FROM json_each(:given)) AS given"
        return sql.replace("GIVEN", relation)


class Undecodable(NamedTuple):
    """A row that can't be decoded, as the driver returned it, and why."""

    stored: Row
    error: str


class Query(_Statement):
    """A statement over given rows, or over values alone, that returns rows or a count."""

    def values(self, form: Form, rows: Sequence[Row], scalars: Mapping[str, Any]) -> list[Any]:
        """The driver's values."""
        named = {
            name: scalars[name] if encode is None else encode(scalars[name]) for name, encode in form.scalars.items()
        }
        if self.given:
            columns = _converted(rows, form.given)
            if form.postgresql:
                named |= {f"given_{name}": column for name, column in zip(self.given, columns, strict=True)}
            else:
                named["given"] = msgspec.json.encode(list(zip(*columns, strict=True))).decode()
        return [named[name] for name in form.values]

    async def fetch(self, session: Session, rows: Sequence[Row] = (), /, **scalars: Any) -> list[Row]:
        """The resulting rows. Raises the decoder's error if one of them can't be decoded."""
        if self.given and not rows:
            return []
        form = self.form(session.postgresql)
        return _decoded(form, await session.rows(form.text, self.values(form, rows, scalars)))

    async def fetch_decodable(self, session: Session, /, **scalars: Any) -> tuple[list[Row], list[Undecodable]]:
        """The resulting rows that can be decoded, and the others."""
        form = self.form(session.postgresql)
        found = await session.rows(form.text, self.values(form, (), scalars))
        try:
            return _decoded(form, found), []
        except _DECODING_ERRORS:
            decoded: list[Row] = []
            undecodable: list[Undecodable] = []
            for row in found:
                try:
                    decoded += _decoded(form, [row])
                except _DECODING_ERRORS as error:
                    undecodable.append(Undecodable(tuple(row), f"{type(error).__name__}: {error}"))
            return decoded, undecodable

    async def count(self, session: Session, rows: Sequence[Row] = (), /, **scalars: Any) -> int:
        """The number of rows that it changed."""
        if self.given and not rows:
            return 0
        form = self.form(session.postgresql)
        return await session.count(form.text, self.values(form, rows, scalars))


def purging(sql: str) -> Query:
    """A query that deletes what is over: what was over before BEFORE. That is `before_at`, `kept_us` ago by the node's clock;
    or as long ago by the database's, if that is earlier, so that a clock that is wrong does not end what all nodes keep.
    SQLite has the node's clock."""
    by_both = "least(:before_at, now() - :kept_us::bigint * interval '1 microsecond')"
    return Query(sql.replace("BEFORE", by_both), sqlite=sql.replace("BEFORE", ":before_at"))


#: What the decoders of stored values raise.
_DECODING_ERRORS = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)


def _decoded(form: Form, found: Sequence[Row]) -> list[Row]:
    if not found or not any(form.results):
        return [tuple(row) for row in found]
    return list(zip(*_converted(found, form.results), strict=True))


class Batch(_Statement):
    """An INSERT or UPDATE for each given row, which may take no effect for some of them. `key` names the given columns that
    identify a row of `table`. In SQLite it runs once per row."""

    def __init__(self, sql: str, *, table: str, given: Sequence[str], key: Sequence[str]) -> None:
        super().__init__(sql, given=given)
        self._returning = f" RETURNING {', '.join(f'{table}.{name}' for name in key)}"
        self._key = tuple(self.given.index(name) for name in key)

    def _with_given(self, sql: str, postgresql: bool) -> str:
        if postgresql:
            return super()._with_given(sql, postgresql) + self._returning
        return _GIVEN_COLUMN.sub(r":given_\1", sql.replace(" FROM GIVEN", ""))

    def values(self, form: Form, rows: Sequence[Row]) -> list[Any]:
        """The driver's values: arrays for PostgreSQL, a tuple per row for SQLite."""
        named = dict(zip((f"given_{name}" for name in self.given), _converted(rows, form.given), strict=True))
        columns = [named[name] for name in form.values]
        return columns if form.postgresql else list(zip(*columns, strict=True))

    async def run(self, session: Session, rows: Sequence[Row]) -> set[Row]:
        """The keys of the rows for which it took effect. No two given rows may have the same key."""
        if not rows:
            return set()
        form = self.form(session.postgresql)
        values = self.values(form, rows)
        if session.postgresql:
            return {tuple(row) for row in await session.rows(form.text, values)}
        return {
            tuple([row[place] for place in self._key])
            for row, each in zip(rows, values, strict=True)
            if await session.count(form.text, each)
        }


def insert(table: str, columns: Sequence[str], *, key: Sequence[str], more: str = "") -> Batch:
    """An INSERT of the given rows, which have these columns; `more` is the rest of the statement."""
    values = ", ".join(f"given.{name}" for name in columns)
    sql = f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM GIVEN{more}"
    return Batch(sql, table=table, given=columns, key=key)

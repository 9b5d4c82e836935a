"""Statements over many rows at once, built with SQLAlchemy and compiled once per database dialect.

The caller's rows become a relation: in PostgreSQL one array per column, in SQLite one JSON text, or one execution per
row where that is faster. The text of a statement therefore does not depend on the number of rows, which keeps it in the
drivers' statement caches and below every limit on variables. Statements run below SQLAlchemy's expression layer, whose
work per row would cost more than the database's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    CursorResult,
    Dialect,
    Executable,
    FromClause,
    Table,
    Text,
    bindparam,
    column,
    func,
    literal_column,
    select,
    tuple_,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.types import TypeDecorator, TypeEngine

Row = tuple[Any, ...]
Fields = Mapping[str, TypeEngine[Any]]
Process = Callable[[Any], Any] | None

#: The savepoint to which a batch that took no effect for some rows is rolled back, to be run row by row.
_SAVEPOINT = "some_rows"


class Given:
    """The caller's rows as a statement sees them: `given["name"]` is the column of that name. `source` is the relation
    to select them from; None if the statement runs once per row."""

    def __init__(self, columns: Mapping[str, ColumnElement[Any]], source: FromClause | None, dialect: str) -> None:
        self._columns = columns
        self.source = source
        self.postgresql = dialect == "postgresql"

    def __getitem__(self, name: str) -> ColumnElement[Any]:
        return self._columns[name]

    @property
    def relation(self) -> FromClause:
        """`source`, for a statement that has all rows at once."""
        if self.source is None:
            raise TypeError("this statement runs once per row")
        return self.source

    def names(self, table: FromClause, *names: str) -> ColumnElement[bool]:
        """The condition that a row of `table` has the values of some given row in these columns, by default in all."""
        names = names or tuple(self._columns)
        given = select(*(self._columns[name] for name in names)).select_from(self.relation)
        if len(names) == 1:
            return table.c[names[0]].in_(given)
        return tuple_(*(table.c[name] for name in names)).in_(given)

    def same(self, table: FromClause, *names: str) -> list[ColumnElement[bool]]:
        """The conditions that a row of `table` has the values of the given row in these columns."""
        return [table.c[name] == self._columns[name] for name in names]

    def insert(self, table: Table, *, where: ColumnElement[bool] | None = None) -> Any:
        """INSERT of the given rows for which `where` holds. The result has the dialect's ON CONFLICT methods."""
        into = postgresql.insert(table) if self.postgresql else sqlite.insert(table)
        if self.source is None and where is None:
            return into.values(dict(self._columns))
        rows = select(*self._columns.values())
        if self.source is not None:
            rows = rows.select_from(self.source)
        return into.from_select(list(self._columns), rows if where is None else rows.where(where))


def _relation(fields: Fields, dialect: str) -> Given:
    """All rows at once."""
    if dialect == "postgresql":
        arrays = (bindparam(f"given_{name}", type_=postgresql.ARRAY(kind)) for name, kind in fields.items())
        rows = func.unnest(*arrays).table_valued(*(column(name, kind) for name, kind in fields.items()), name="given")
        source = rows.render_derived()
        return Given(dict(source.c), source, dialect)
    each = func.json_each(bindparam("given", type_=Text())).table_valued("value", name="given")
    columns: dict[str, ColumnElement[Any]] = {
        name: func.json_extract(each.c.value, literal_column(f"'$[{place}]'"), type_=kind)
        for place, (name, kind) in enumerate(fields.items())
    }
    return Given(columns, each, dialect)


def _one_row(fields: Fields, dialect: str) -> Given:
    columns: dict[str, ColumnElement[Any]] = {
        name: bindparam(f"given_{name}", type_=kind) for name, kind in fields.items()
    }
    return Given(columns, None, dialect)


def fields(table: FromClause, *names: str) -> Fields:
    """The types of these columns, for given rows: as of the table, but without collation."""
    return {name: _given_type(table.c[name].type) for name in names}


def _given_type(kind: TypeEngine[Any]) -> TypeEngine[Any]:
    if isinstance(kind, TypeDecorator):
        return kind
    return Text() if isinstance(kind, Text) else BigInteger()


class _Compiled(NamedTuple):
    text: str
    #: Names of the variables, in the driver's order.
    variables: tuple[str, ...]
    #: Values of the variables that the statement itself sets.
    constants: Mapping[str, Any]
    #: How the given columns, the scalars by name, and the resulting columns are converted.
    givens: tuple[Process, ...]
    scalars: Mapping[str, Process]
    results: tuple[Process, ...] | None


def _compile(statement: Executable, given: Fields, dialect: Dialect) -> _Compiled:
    compiled = statement.compile(dialect=dialect)  # type: ignore[attr-defined]
    columns = getattr(statement, "exported_columns", ())
    results = tuple(c.type.dialect_impl(dialect).result_processor(dialect, None) for c in columns)
    scalars = {name: bind.type for name, bind in compiled.binds.items() if bind.required and not _is_given(name)}
    return _Compiled(
        str(compiled),
        tuple(compiled.positiontup or ()),
        {name: value for name, value in compiled.params.items() if value is not None},
        tuple(kind.dialect_impl(dialect).bind_processor(dialect) for kind in given.values()),
        {name: kind.dialect_impl(dialect).bind_processor(dialect) for name, kind in scalars.items()},
        results if any(results) else None,
    )


def _is_given(name: str) -> bool:
    return name == "given" or name.startswith("given_")


def _columns(rows: Sequence[Row], processors: tuple[Process, ...]) -> list[Sequence[Any]]:
    """The rows transposed and converted, as the driver expects values."""
    return [
        values if process is None else [process(value) for value in values]
        for values, process in zip(zip(*rows, strict=True), processors, strict=True)
    ]


class _Statement:
    """A statement with its form for each dialect, which `build` makes of the given rows."""

    def __init__(self, build: Executable | Callable[[Given], Any], given: Fields) -> None:
        self.given = given
        self._build = build
        self._names = tuple(f"given_{name}" for name in given)
        self._made: dict[str, _Compiled] = {}

    def _for(self, dialect: Dialect) -> _Compiled:
        made = self._made.get(dialect.name)
        if made is None:
            made = self._made[dialect.name] = _compile(self._statement(dialect.name), self.given, dialect)
        return made

    def _statement(self, dialect: str) -> Any:
        return self._build if isinstance(self._build, Executable) else self._build(_relation(self.given, dialect))

    def text(self, dialect: Dialect) -> str:
        """The SQL text for the driver."""
        return self._for(dialect).text

    def _rows(self, dialect: Dialect, result: CursorResult[Any]) -> list[Row]:
        # From the driver's cursor: SQLAlchemy's named rows are not needed here and cost time.
        found = result.cursor.fetchall()
        result.close()
        processors = self._for(dialect).results
        if processors is None or not found:
            return [tuple(row) for row in found]
        return list(zip(*_columns(found, processors), strict=True))


class Query(_Statement):
    """A statement over given rows, or over scalars alone, that returns rows or a count.

    `build` creates it for a dialect, unless it is a statement for all of them. Its bind parameters are the scalars.
    """

    def __init__(self, build: Executable | Callable[[Given], Any], given: Fields | None = None) -> None:
        super().__init__(build, given or {})

    def variables(self, dialect: Dialect, rows: Sequence[Row], scalars: Mapping[str, Any]) -> Row:
        """The driver's variables."""
        compiled = self._for(dialect)
        values: dict[str, Any] = dict(compiled.constants)
        for name, process in compiled.scalars.items():
            values[name] = scalars[name] if process is None else process(scalars[name])
        if self.given:
            columns = _columns(rows, compiled.givens)
            if dialect.name == "postgresql":
                values.update(zip(self._names, map(list, columns), strict=True))
            else:
                values["given"] = msgspec.json.encode(list(zip(*columns, strict=True))).decode()
        return tuple([values.get(name) for name in compiled.variables])

    def fetch(self, connection: Connection, rows: Sequence[Row] = (), /, **scalars: Any) -> list[Row]:
        """The resulting rows."""
        if self.given and not rows:
            return []
        return self._rows(connection.dialect, self._execute(connection, rows, scalars))

    def count(self, connection: Connection, rows: Sequence[Row] = (), /, **scalars: Any) -> int:
        """The number of rows that it changed."""
        return 0 if self.given and not rows else self._execute(connection, rows, scalars).rowcount

    def _execute(self, connection: Connection, rows: Sequence[Row], scalars: Mapping[str, Any]) -> CursorResult[Any]:
        dialect = connection.dialect
        return connection.exec_driver_sql(self.text(dialect), self.variables(dialect, rows, scalars))


class Batch(_Statement):
    """An INSERT or UPDATE for each given row, which may take no effect for some of them.

    `build` creates it for a dialect. `key` names the given columns that identify a row; in PostgreSQL the built
    statement gets a RETURNING of the table's columns of these names.
    """

    def __init__(self, table: Table, given: Fields, build: Callable[[Given], Any], *, key: Sequence[str]) -> None:
        super().__init__(build, given)
        self._returning = [table.c[name] for name in key]
        self._key = tuple(list(given).index(name) for name in key)

    def _statement(self, dialect: str) -> Any:
        if dialect == "postgresql":
            return super()._statement(dialect).returning(*self._returning)
        assert not isinstance(self._build, Executable)
        return self._build(_one_row(self.given, dialect))

    def run(self, connection: Connection, rows: Sequence[Row]) -> set[Row]:
        """The keys of the rows for which it took effect. No two given rows may have the same key."""
        if not rows:
            return set()
        if connection.dialect.name == "postgresql":
            return set(self._run_at_once(connection, rows))
        connection.exec_driver_sql(f"SAVEPOINT {_SAVEPOINT}")
        if self._execute(connection, rows).rowcount == len(rows):
            took_effect = list(rows)
        else:
            # The driver returns only a count, which is rarely less than all.
            connection.exec_driver_sql(f"ROLLBACK TO {_SAVEPOINT}")
            took_effect = [row for row in rows if self._execute(connection, [row]).rowcount]
        connection.exec_driver_sql(f"RELEASE {_SAVEPOINT}")
        return {tuple([row[place] for place in self._key]) for row in took_effect}

    def count(self, connection: Connection, rows: Sequence[Row]) -> int:
        """The number of rows for which it took effect."""
        if not rows:
            return 0
        if connection.dialect.name == "postgresql":
            return len(self._run_at_once(connection, rows))
        return self._execute(connection, rows).rowcount

    def variables(self, dialect: Dialect, rows: Sequence[Row]) -> Row | list[Row]:
        """The driver's variables: arrays for PostgreSQL, one tuple per execution for SQLite."""
        compiled = self._for(dialect)
        columns = dict(zip(self._names, _columns(rows, compiled.givens), strict=True))
        ordered = [columns[name] for name in compiled.variables]
        return tuple(map(list, ordered)) if dialect.name == "postgresql" else list(zip(*ordered, strict=True))

    def _run_at_once(self, connection: Connection, rows: Sequence[Row]) -> list[Row]:
        return self._rows(connection.dialect, self._execute(connection, rows))

    def _execute(self, connection: Connection, rows: Sequence[Row]) -> CursorResult[Any]:
        dialect = connection.dialect
        return connection.exec_driver_sql(self.text(dialect), self.variables(dialect, rows))

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
from sqlalchemy.types import TypeEngine

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
        """The condition that a row of `table` has the values of some given row in these columns."""
        given = select(*(self._columns[name] for name in names)).select_from(self.relation)
        if len(names) == 1:
            return table.c[names[0]].in_(given)
        return tuple_(*(table.c[name] for name in names)).in_(given)

    def same(self, table: FromClause, *names: str) -> list[ColumnElement[bool]]:
        """The conditions that a row of `table` has the values of the given row in these columns."""
        return [table.c[name] == self._columns[name] for name in names]

    def insert(self, table: Table, *names: str, where: ColumnElement[bool] | None = None) -> Any:
        """INSERT of these columns of the given rows for which `where` holds. The result has the dialect's ON CONFLICT
        methods."""
        into = postgresql.insert(table) if self.postgresql else sqlite.insert(table)
        if self.source is None and where is None:
            return into.values({name: self._columns[name] for name in names})
        rows = select(*(self._columns[name] for name in names))
        if self.source is not None:
            rows = rows.select_from(self.source)
        return into.from_select(list(names), rows if where is None else rows.where(where))


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


class _Compiled(NamedTuple):
    text: str
    #: Names of the variables, in the driver's order.
    variables: tuple[str, ...]
    #: Values of the variables that the statement itself sets.
    constants: Mapping[str, Any]
    results: tuple[Process, ...] | None


def _compile(statement: Executable, dialect: Dialect) -> _Compiled:
    compiled = statement.compile(dialect=dialect)  # type: ignore[attr-defined]
    variables = tuple(compiled.positiontup or ())
    columns = list(getattr(statement, "exported_columns", ()))
    results = tuple(c.type.dialect_impl(dialect).result_processor(dialect, None) for c in columns)
    constants = {name: value for name, value in compiled.params.items() if value is not None}
    return _Compiled(str(compiled), variables, constants, results if any(results) else None)


def _processors(fields: Fields, dialect: Dialect) -> tuple[Process, ...]:
    return tuple(kind.dialect_impl(dialect).bind_processor(dialect) for kind in fields.values())


def _columns(rows: Sequence[Row], processors: tuple[Process, ...]) -> list[Sequence[Any]]:
    """The rows transposed and converted, as the driver expects values."""
    return [
        values if process is None else [process(value) for value in values]
        for values, process in zip(zip(*rows, strict=True), processors, strict=True)
    ]


def _rows(result: CursorResult[Any], processors: tuple[Process, ...] | None) -> list[Row]:
    # From the driver's cursor: SQLAlchemy's named rows are not needed here and cost time.
    found = result.cursor.fetchall()
    result.close()
    if processors is None or not found:
        return [tuple(row) for row in found]
    return list(zip(*_columns(found, processors), strict=True))


class Query:
    """A statement over given rows, or over scalars alone, that returns rows or a count.

    `build` creates it for a dialect. Scalars are bind parameters with the names in `scalars`.
    """

    def __init__(self, given: Fields, build: Callable[[Given], Any], scalars: Fields | None = None) -> None:
        self.given = given
        self.scalars = scalars or {}
        self._build = build
        self._made: dict[str, tuple[_Compiled, tuple[Process, ...], dict[str, Process]]] = {}

    def _for(self, dialect: Dialect) -> tuple[_Compiled, tuple[Process, ...], dict[str, Process]]:
        made = self._made.get(dialect.name)
        if made is None:
            compiled = _compile(self._build(_relation(self.given, dialect.name)), dialect)
            scalars = dict(zip(self.scalars, _processors(self.scalars, dialect), strict=True))
            made = self._made[dialect.name] = (compiled, _processors(self.given, dialect), scalars)
        return made

    def text(self, dialect: Dialect) -> str:
        """The SQL text for the driver."""
        return self._for(dialect)[0].text

    def variables(self, dialect: Dialect, rows: Sequence[Row], scalars: Mapping[str, Any]) -> Row:
        """The driver's variables."""
        compiled, givens, processors = self._for(dialect)
        values: dict[str, Any] = dict(compiled.constants)
        for name, process in processors.items():
            values[name] = scalars[name] if process is None else process(scalars[name])
        if self.given:
            columns = _columns(rows, givens)
            if dialect.name == "postgresql":
                values.update((f"given_{name}", list(given)) for name, given in zip(self.given, columns, strict=True))
            else:
                values["given"] = msgspec.json.encode(list(zip(*columns, strict=True))).decode()
        return tuple([values.get(name) for name in compiled.variables])

    def fetch(self, connection: Connection, rows: Sequence[Row] = (), /, **scalars: Any) -> list[Row]:
        """The resulting rows."""
        if self.given and not rows:
            return []
        return _rows(self._execute(connection, rows, scalars), self._for(connection.dialect)[0].results)

    def count(self, connection: Connection, rows: Sequence[Row] = (), /, **scalars: Any) -> int:
        """The number of rows that it changed."""
        return 0 if self.given and not rows else self._execute(connection, rows, scalars).rowcount

    def _execute(self, connection: Connection, rows: Sequence[Row], scalars: Mapping[str, Any]) -> CursorResult[Any]:
        dialect = connection.dialect
        return connection.exec_driver_sql(self.text(dialect), self.variables(dialect, rows, scalars))


class Batch:
    """An INSERT or UPDATE for each given row, which may take no effect for some of them.

    `build` creates it for a dialect. `key` names the given columns that identify a row; in PostgreSQL the built
    statement gets a RETURNING of the table's columns of these names.
    """

    def __init__(self, table: Table, given: Fields, build: Callable[[Given], Any], *, key: tuple[str, ...]) -> None:
        self._table = table
        self.given = given
        self._build = build
        self._key = tuple(list(given).index(name) for name in key)
        self._key_names = key
        self._made: dict[str, tuple[_Compiled, tuple[Process, ...], tuple[int, ...]]] = {}

    def _for(self, dialect: Dialect) -> tuple[_Compiled, tuple[Process, ...], tuple[int, ...]]:
        made = self._made.get(dialect.name)
        if made is None:
            if dialect.name == "postgresql":
                statement = self._build(_relation(self.given, dialect.name))
                statement = statement.returning(*(self._table.c[name] for name in self._key_names))
            else:
                statement = self._build(_one_row(self.given, dialect.name))
            compiled = _compile(statement, dialect)
            places = {f"given_{name}": place for place, name in enumerate(self.given)}
            order = tuple(places[name] for name in compiled.variables)
            made = self._made[dialect.name] = (compiled, _processors(self.given, dialect), order)
        return made

    def text(self, dialect: Dialect) -> str:
        """The SQL text for the driver."""
        return self._for(dialect)[0].text

    def run(self, connection: Connection, rows: Sequence[Row]) -> set[Row]:
        """The keys of the rows for which it took effect. No two given rows may have the same key."""
        if not rows:
            return set()
        if connection.dialect.name == "postgresql":
            return set(self._run_at_once(connection, rows))
        connection.exec_driver_sql(f"SAVEPOINT {_SAVEPOINT}")
        if self._run_each(connection, rows) == len(rows):
            took_effect = list(rows)
        else:
            # The driver returns only a count, which is rarely less than all.
            connection.exec_driver_sql(f"ROLLBACK TO {_SAVEPOINT}")
            took_effect = [row for row in rows if self._run_each(connection, [row])]
        connection.exec_driver_sql(f"RELEASE {_SAVEPOINT}")
        return {tuple([row[place] for place in self._key]) for row in took_effect}

    def count(self, connection: Connection, rows: Sequence[Row]) -> int:
        """The number of rows for which it took effect."""
        if not rows:
            return 0
        if connection.dialect.name == "postgresql":
            return len(self._run_at_once(connection, rows))
        return self._run_each(connection, rows)

    def variables(self, dialect: Dialect, rows: Sequence[Row]) -> Row | list[Row]:
        """The driver's variables: arrays for PostgreSQL, one tuple per execution for SQLite."""
        _, processors, order = self._for(dialect)
        columns = _columns(rows, processors)
        if dialect.name == "postgresql":
            return tuple([list(columns[place]) for place in order])
        return list(zip(*[columns[place] for place in order], strict=True))

    def _run_at_once(self, connection: Connection, rows: Sequence[Row]) -> list[Row]:
        dialect = connection.dialect
        result = connection.exec_driver_sql(self.text(dialect), self.variables(dialect, rows))
        return _rows(result, self._for(dialect)[0].results)

    def _run_each(self, connection: Connection, rows: Sequence[Row]) -> int:
        dialect = connection.dialect
        return connection.exec_driver_sql(self.text(dialect), self.variables(dialect, rows)).rowcount

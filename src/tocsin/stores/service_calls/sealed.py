"""What the agent's tables have of encrypted secrets: where they are still needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tocsin.model.sealed_text import SEALED_PREFIX
from tocsin.service_calls.messages import StartExecution
from tocsin.service_calls.ports import SealedColumn, SealedPage, SealedText
from tocsin.stores.service_calls.outbox import WAITS
from tocsin.stores.service_calls.statements import KEY, Database, Kind, Query, Session

#: Calls that go on, and those that can be retried, whether or not their failure was dismissed.
_CAN_BE_SENT = "(watch_at IS NOT NULL OR status = 'Failed')"
#: The key of each table, and which of its rows may still be used.
_ROWS = {
    SealedColumn.SIGNING: (("tenant_id",), "true"),
    SealedColumn.REQUEST: (KEY, _CAN_BE_SENT),
    SealedColumn.HOOKS: (KEY, _CAN_BE_SENT),
    SealedColumn.ORDER: ((*KEY, "execution_id"), "true"),
}


def find(place: SealedColumn) -> Query:
    """The first rows behind the key in `:after_0`, `:after_1`, …, each with its text if that matches `:mark`."""
    table, _, column = place.partition(".")
    key, wanted = _ROWS[place]
    after = ", ".join(f":after_{number}" for number in range(len(key)))
    names = ", ".join(key)
    sql = (
        f"SELECT {names}, CASE WHEN {wanted} AND {column} LIKE :mark THEN {column} END FROM {table} "
        f"WHERE ({names}) > ({after}) ORDER BY {names} LIMIT :most"
    )
    # As it is stored.
    return Query(sql, results=(*key, column), kinds={column: Kind()})


def put(place: SealedColumn) -> Query:
    """Replaces the text of one row, unless it has changed."""
    table, _, column = place.partition(".")
    key, _ = _ROWS[place]
    row = " AND ".join(f"{name} = :key_{number}" for number, name in enumerate(key))
    return Query(f"UPDATE {table} SET {column} = :fresh WHERE {row} AND {column} = :former")


STATEMENTS = {place: (find(place), put(place)) for place in SealedColumn}
#: The first unpublished messages behind a number, and of each whether it is an order that matches `:mark`.
UNPUBLISHED = Query(
    f"SELECT id, CASE WHEN event_type = '{StartExecution.__name__}' AND event_payload LIKE :mark THEN 1 ELSE 0 END "
    f"FROM outbox WHERE {WAITS} AND id > :after ORDER BY id LIMIT :most"
)


def _mark(key_id: str) -> str:
    return f"%{SEALED_PREFIX}{key_id}.%"


class SqlSealedTexts:
    """The port SealedTexts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, place: SealedColumn, key_id: str, after: Sequence[str] | None, limit: int) -> SealedPage:
        key, _ = _ROWS[place]
        values: dict[str, Any] = {f"after_{number}": text for number, text in enumerate(after or [""] * len(key))}
        query, mark = STATEMENTS[place][0], _mark(key_id)
        rows = await self._database.read(lambda session: query.fetch(session, mark=mark, most=limit, **values))
        texts = [SealedText(place, row[:-1], row[-1]) for row in rows if row[-1] is not None]
        return SealedPage(texts, rows[-1][:-1] if len(rows) == limit else None)

    async def replace(self, text: SealedText, fresh: str) -> bool:
        values = {f"key_{number}": name for number, name in enumerate(text.key)}

        async def work(session: Session) -> int:
            return await STATEMENTS[text.place][1].count(session, fresh=fresh, former=text.text, **values)

        return bool(await self._database.write(work))

    async def unpublished(self, key_id: str, after: int, limit: int) -> tuple[int, int | None]:
        values = {"mark": _mark(key_id), "after": after, "most": limit}
        rows = await self._database.read(lambda session: UNPUBLISHED.fetch(session, **values))
        return sum(found for _, found in rows), rows[-1][0] if len(rows) == limit else None

"""Calls that failed and nobody has dealt with: their causes from an index alone, and what they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tocsin.ports.agent_calls import CallFailure, CallFailurePlace, Tenants
from tocsin.stores.service_calls.service_calls import TAGS
from tocsin.stores.service_calls.statements import KEY, Database, Query, Row, Session

_PLACED = ("finished_at", "service_call_id", "tenant_id")
#: What is read of a failure. A call that failed has been executed.
_FAILED = (*_PLACED, "failure", "name", "due_at", "next_attempt_at", "execution_id")
FAILURES = Query(
    # A join, as for tags: each call is read by its key.
    f"SELECT {', '.join(f'calls.{name}' for name in _FAILED)} FROM GIVEN CROSS JOIN service_calls AS calls "
    "WHERE calls.tenant_id = given.tenant_id AND calls.service_call_id = given.service_call_id",
    given=KEY,
    results=_FAILED,
)


def causes_of(tenants: Tenants, *, behind: bool) -> Query:
    """The first `most` failures since an instant, behind a place or from the newest one, of one tenant or of all."""
    return _causes(isinstance(tenants, str), behind)


@lru_cache(maxsize=8)
def _causes(one: bool, behind: bool) -> Query:
    """The first `most` failures since an instant, of one tenant or of all, from an index that has all of it."""
    where = ["tenant_id = :tenant"] * one + ["failure IS NOT NULL", "finished_at >= :since_at"]
    place = _PLACED[:2] if one else _PLACED
    if behind:
        values = (":before_at", ":before_id", ":before_tenant")[: len(place)]
        where.append(f"({', '.join(place)}) < ({', '.join(values)})")
    newest = ", ".join(f"{name} DESC" for name in place)
    index = f"idx_service_calls_{'failures' if one else 'all_failures'}"
    return Query(
        f"SELECT {', '.join(_PLACED)}, failure FROM service_calls AS calls INDEXED BY {index} "
        f"WHERE {' AND '.join(where)} ORDER BY {newest} LIMIT :most",
        results=(*_PLACED, "failure"),
    )


async def read_causes(
    database: Database, tenants: Tenants, since_us: int, before: CallFailurePlace | None, limit: int
) -> list[tuple[CallFailurePlace, str]]:
    """`CallQueries.causes`."""
    query = causes_of(tenants, behind=before is not None)
    values: dict[str, Any] = {"since_at": since_us, "most": limit}
    values |= {"tenant": tenants} if isinstance(tenants, str) else {}
    if before is not None:
        values |= {"before_at": before.failed_at, "before_id": before.service_call_id}
        values |= {"before_tenant": before.tenant_id}
    rows = await database.read(lambda session: query.fetch(session, **values))
    return [(CallFailurePlace(*row[:3]), row[3]) for row in rows]


async def read_failures(database: Database, places: Sequence[CallFailurePlace]) -> list[CallFailure]:
    """`CallQueries.failures`."""
    # Another end of the same call is another failure.
    keys, wanted = [(place.tenant_id, place.service_call_id) for place in places], set(places)

    async def work(session: Session) -> list[CallFailure]:
        rows = await FAILURES.fetch(session, keys)
        tags: dict[Row, tuple[str, ...]] = {}
        for tenant_id, call_id, tag in await TAGS.fetch(session, keys):
            tags[tenant_id, call_id] = (*tags.get((tenant_id, call_id), ()), tag)
        return [
            CallFailure(tenant, call, at, failure, name, again_at or due_at, run, tags.get((tenant, call), ()))
            for at, call, tenant, failure, name, due_at, again_at, run in rows
            if failure is not None and (at, call, tenant) in wanted
        ]

    found = await database.read(work)
    return sorted(found, key=lambda failure: failure.place, reverse=True)

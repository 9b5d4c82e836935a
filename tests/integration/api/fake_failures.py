"""Failures that are always there: one timer's, of each namespace."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence

from tocsin.model.failure import SEPARATOR
from tocsin.model.failure_groups import CountedFailures, FailureGroups, Sample
from tocsin.ports.store import FailureRow
from tocsin.timers.failures import FailureFilter, Found, key_of

_AT = 1_700_000_000_000_000


def _row(wanted: FailureFilter) -> FailureRow:
    namespace = wanted.scope if isinstance(wanted.scope, str) else "default"
    failure = f"http://127.0.0.1:1/{SEPARATOR}HTTP 500"
    return FailureRow(bytes(16), bytes(15), namespace, "failed", failure, _AT, _AT, _AT)


class FakeFailures:
    """What handlers call of `Failures`. `check` raises what a request about a namespace is refused with."""

    def __init__(self, check: Callable[[str], None]) -> None:
        self._check = check

    async def groups(self, wanted: FailureFilter, by: Sequence[str], limit: int) -> FailureGroups[Found]:
        row = await self._found(wanted)
        group = CountedFailures(key_of(row), array("q", [_AT]), [(0, row)], Sample("POST", None, None))
        return FailureGroups([group], 0, 1, False)

    async def members(
        self, wanted: FailureFilter, limit: int, cursor: str | None
    ) -> tuple[list[FailureRow], str | None]:
        return [await self._found(wanted)], None

    async def dismiss(self, wanted: FailureFilter) -> tuple[int, bool]:
        await self._found(wanted)
        return 1, False

    async def dismiss_ids(self, namespace: str, ids: Iterable[str]) -> int:
        self._check(namespace)
        return len(list(ids))

    async def _found(self, wanted: FailureFilter) -> FailureRow:
        row = _row(wanted)
        self._check(row.namespace)
        return row

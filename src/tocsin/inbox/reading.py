"""A row of the inbox as the create that it stands for, and whether a refusal is for good."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from msgspec import UNSET

from tocsin.model.condition import Condition
from tocsin.model.errors import CollectionFull, FieldError, InvalidInput, TocsinError
from tocsin.model.instants import format_duration, parse_duration
from tocsin.model.timer import Timer
from tocsin.ports.inbox import DueRow
from tocsin.web.http import wire
from tocsin.web.http.convert import RequestParser
from tocsin.web.http.errors import error_code, problem_kind
from tocsin.web.http.reading import JsonReader
from tocsin.web.http.repeated import condition_of

#: Statuses that are final, but for these: a slip of an operator's, or something that passes.
_PASSING = frozenset({401, 403, 408, 429})
#: Of a reason, which may quote the row.
_REASON_CHARS_MAX = 1_000

_reader = JsonReader(wire.CreateTimer)


class RowReader:
    """Reads rows, with the rules that requests are read with. Rows may ask for timers of these namespaces, by requests of at
    most `request_bytes_max`."""

    def __init__(self, parser: RequestParser, namespaces: Collection[str], request_bytes_max: int) -> None:
        self.request_bytes_max = request_bytes_max
        self._parser = parser
        self._namespaces = frozenset(namespaces)

    def timer(self, row: DueRow, request: str, *, machine_us: int, now_us: int) -> tuple[Timer, Condition | None]:
        """The timer, and the condition that creates it once: the row's id is its idempotency key. A delay counts from when
        the row was written, and `machine_us` is the time of that clock now; `now_us` is the engine's time. Raises
        InvalidInput."""
        sent = _reader.read(request.encode())
        if sent.namespace not in self._namespaces:
            reason = f"{sent.namespace!r} is not among inbox.namespaces; add it there, or have the row name one of them"
            raise InvalidInput(FieldError("namespace", reason))
        sent.idempotency_key = row.id
        if sent.delay is not UNSET:
            # A delay that can't be read is refused below, with all that is wrong.
            with contextlib.suppress(ValueError):
                left_us = parse_duration(sent.delay) - max(machine_us - row.created_at, 0)
                sent.delay = format_duration(max(left_us, 0))
        timer = self._parser.timer(sent, now_us, None)
        return timer, condition_of(sent, None, timer.execute_at)


def is_final(error: TocsinError) -> bool:
    """Whether the row would be refused again, by the status that a request would be answered with. A collection that is
    full has room when its timer has fired."""
    if isinstance(error, CollectionFull):
        return False
    status = problem_kind(error).status
    return 400 <= status < 500 and status not in _PASSING


def reason_of(error: TocsinError) -> str:
    """Why a row was refused, as its column has it."""
    return f"{error_code(error)}: {error}"[:_REASON_CHARS_MAX]

"""Reading a large batch without keeping others waiting: item by item, giving way in between.

One call of the decoder for 32 MB takes up to 400 ms, during which nothing else happens. Here the items' places are found
first, in pieces, then each is decoded by itself.
"""

from __future__ import annotations

import asyncio
import re
import time

import msgspec

from tocsin.http.errors import MalformedBody
from tocsin.model.errors import FieldError, InvalidInput

#: Bodies up to this size are decoded at once: what takes longest, a list of empty strings, takes 10 ms.
WHOLE_BYTES_MAX = 512 * 1024
#: How long one turn may take before others get theirs.
TURN_S = 0.005

_HEAD = re.compile(rb'\s{0,1000}\{\s{0,1000}"timers"\s{0,1000}:\s{0,1000}\[\s{0,1000}')
_BETWEEN = re.compile(rb"\s{0,1000}(?:,\s{0,1000}(?=\{)|(\]\s{0,1000}\}\s{0,1000}\Z))")
#: The first part of an item's text that is scanned for its end; if that isn't in it, four times as much, and so on.
_WINDOW_BYTES = 16 * 1024
#: Reads one value without making anything of it, and says where something else follows.
_scan = msgspec.json.Decoder(msgspec.Raw).decode
_FOLLOWS = re.compile(r"JSON is malformed: trailing characters \(byte (\d+)\)\Z")


class Turns:
    """Gives way to others whenever this turn has taken long enough."""

    def __init__(self) -> None:
        self._ends_s = time.perf_counter() + TURN_S

    async def look(self) -> None:
        """To be called between steps that are short."""
        if time.perf_counter() >= self._ends_s:
            await asyncio.sleep(0)
            self._ends_s = time.perf_counter() + TURN_S


async def items_of(body: bytes, items_max: int, item_bytes_max: int, turns: Turns) -> list[bytes]:
    """The texts of the objects in `{"timers": [{…}, …]}`, whose insides are still unread.

    Raises InvalidInput for too many items, MalformedBody for an item that is too long and for another form, which a shorter
    body may have.
    """
    head = _HEAD.match(body)
    if head is None:
        raise MalformedBody('the body is long, and not {"timers": [{…}, …]} and nothing else')
    items: list[bytes] = []
    at = head.end()
    while True:
        if not body.startswith(b"{", at):
            raise MalformedBody(f"timers[{len(items)}] is not an object")
        if len(items) >= items_max:
            raise InvalidInput(FieldError("timers", f"has more than {items_max} entries; no more are accepted"))
        await turns.look()
        end = _end_of(body, at, len(items), item_bytes_max)
        items.append(body[at:end])
        between = _BETWEEN.match(body, end)
        if between is None:
            raise MalformedBody(
                f"the body is not JSON: after timers[{len(items) - 1}] neither an object nor the end follows"
            )
        if between[1]:
            return items
        at = between.end()


def _end_of(body: bytes, start: int, number: int, bytes_max: int) -> int:
    window = min(_WINDOW_BYTES, bytes_max)
    while True:
        try:
            _scan(body[start : start + window])
            found = None
        except (msgspec.DecodeError, RecursionError) as error:
            found = _FOLLOWS.match(str(error))
        if found is not None:
            # It counts from one.
            return start + int(found[1]) - 1
        if window == bytes_max or start + window >= len(body):
            raise MalformedBody(f"timers[{number}] is not JSON, is nested too deep, or has more than {bytes_max} bytes")
        window = min(4 * window, bytes_max)

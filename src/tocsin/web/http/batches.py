"""Reads a large batch item by item, and yields to the event loop in between; joins large texts outside of it.

One call of the decoder for 32 MB takes up to 400 ms, during which the event loop is blocked. Here the items' boundaries
are found first, in pieces; then each item is decoded by itself.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence

import msgspec

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.web.http.errors import MalformedBody

#: Bodies up to this size are decoded in one call: the slowest content, a list of empty strings, takes 10 ms.
WHOLE_BYTES_MAX = 512 * 1024
#: Texts up to this size are joined by the event loop. Above it, memory is new from the kernel, which takes up to 3 ms for
#: each megabyte while other processes want some, and `bytes.join` leaves the event loop alone meanwhile.
_JOINED_AT_ONCE_BYTES = 1024 * 1024
#: Seconds of work before yielding to the event loop.
TIME_SLICE_S = 0.005

_HEAD = re.compile(rb'\s{0,1000}\{\s{0,1000}"timers"\s{0,1000}:\s{0,1000}\[\s{0,1000}')
_BETWEEN = re.compile(rb"\s{0,1000}(?:,\s{0,1000}(?=\{)|(\]\s{0,1000}\}\s{0,1000}\Z))")
#: Bytes scanned first for the end of an item; then four times as many, and so on.
_WINDOW_BYTES = 16 * 1024
#: Parses one value without building objects; its error names the position of trailing text.
_scan = msgspec.json.Decoder(msgspec.Raw).decode
_FOLLOWS = re.compile(r"JSON is malformed: trailing characters \(byte (\d+)\)\Z")


class TimeSlice:
    """Yields to the event loop whenever this task has worked for long enough."""

    def __init__(self) -> None:
        self._ends_s = time.perf_counter() + TIME_SLICE_S

    def is_over(self) -> bool:
        """Whether the time slice has ended, so that it is time to `yield_now`. Ask between short steps."""
        return time.perf_counter() >= self._ends_s

    async def yield_now(self) -> None:
        """Yields to the event loop, and begins another time slice."""
        await asyncio.sleep(0)
        self._ends_s = time.perf_counter() + TIME_SLICE_S


async def joined(parts: Sequence[bytes], size: int) -> bytes:
    """The parts, of `size` bytes together, as one."""
    return b"".join(parts) if size <= _JOINED_AT_ONCE_BYTES else await asyncio.to_thread(b"".join, parts)


async def items_of(body: bytes, items_max: int, item_bytes_max: int, time_slice: TimeSlice) -> list[bytes]:
    """The texts of the objects in `{"timers": [{…}, …]}`, not yet decoded.

    Raises InvalidInput for too many items, MalformedBody for an item that is too long, and for a body that is not exactly
    this object, which only small bodies may deviate from.
    """
    head = _HEAD.match(body)
    if head is None:
        raise MalformedBody('a body of this size must be exactly {"timers": [{…}, …]}')
    items: list[bytes] = []
    at = head.end()
    while True:
        if not body.startswith(b"{", at):
            raise MalformedBody(f"timers[{len(items)}] is not an object")
        if len(items) >= items_max:
            raise InvalidInput(
                FieldError("timers", f"has more than {items_max} entries; at most {items_max} are accepted")
            )
        if time_slice.is_over():
            await time_slice.yield_now()
        end = _end_of(body, at, len(items), item_bytes_max)
        items.append(body[at:end])
        between = _BETWEEN.match(body, end)
        if between is None:
            raise MalformedBody(f"the body is not JSON: expected an object or the end after timers[{len(items) - 1}]")
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
            # The position in the message counts from one.
            return start + int(found[1]) - 1
        if window == bytes_max or start + window >= len(body):
            raise MalformedBody(
                f"timers[{number}] is not JSON, is nested too deeply, or has more than {bytes_max} bytes"
            )
        window = min(4 * window, bytes_max)

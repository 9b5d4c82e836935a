"""The opaque text by which a client continues a list."""

from __future__ import annotations

import base64
import binascii
import struct

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.ports.store import ListCursor

_CURSOR = struct.Struct(">q16s32s")


def cursor_instant(cursor: str) -> int:
    """How far a list has come that goes on at this cursor: everything due before that instant (microseconds) was listed or
    did not match. InvalidInput for what no list gave."""
    place = read_cursor(cursor)
    assert place is not None
    return place[0]


def write_cursor(cursor: ListCursor | None) -> str | None:
    """The opaque text of a place in a list."""
    if cursor is None:
        return None
    return base64.urlsafe_b64encode(_CURSOR.pack(*cursor)).decode().rstrip("=")


def read_cursor(text: str | None) -> ListCursor | None:
    """The place that `write_cursor` wrote; InvalidInput otherwise."""
    if text is None:
        return None
    try:
        instant, uuid, row_generation = _CURSOR.unpack(
            base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
        )
    except (binascii.Error, struct.error, ValueError):
        raise InvalidInput(
            FieldError("cursor", "is not one that a list call gave; leave it out to start anew")
        ) from None
    return (instant, uuid, row_generation)

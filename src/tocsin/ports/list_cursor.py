"""The opaque text with which a client continues a list."""

from __future__ import annotations

import base64
import binascii
import struct

from tocsin.model.errors import FieldError, InvalidInput
from tocsin.ports.store import ListCursor

_CURSOR = struct.Struct(">q16s32s")


def cursor_instant(cursor: str) -> int:
    """How far a list has read that continues at this cursor: everything due before that instant (microseconds) was listed or
    did not match. Raises InvalidInput for a text that no list returned."""
    place = read_cursor(cursor)
    assert place is not None
    return place[0]


def write_cursor(cursor: ListCursor | None) -> str | None:
    """The opaque text of a position in a list."""
    if cursor is None:
        return None
    return base64.urlsafe_b64encode(_CURSOR.pack(*cursor)).decode().rstrip("=")


def read_cursor(text: str | None) -> ListCursor | None:
    """The position that `write_cursor` encoded. Raises InvalidInput for any other text."""
    if text is None:
        return None
    try:
        instant, uuid, row_generation = _CURSOR.unpack(
            base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
        )
    except (binascii.Error, struct.error, ValueError):
        raise InvalidInput(
            FieldError("cursor", "is not a cursor that a list call returned; leave it out to start at the beginning")
        ) from None
    return (instant, uuid, row_generation)

"""Records that are stored as JSON text."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from tocsin.model.errors import RecordUndecodable
from tocsin.model.timer import UNUSABLE

S = TypeVar("S", bound=msgspec.Struct)


class JsonRecord(Generic[S]):
    """How values of a struct are stored."""

    def __init__(self, kind: type[S]) -> None:
        self._encoder, self._decoder = msgspec.json.Encoder(), msgspec.json.Decoder(kind)

    def encode(self, value: S) -> bytes:
        """The stored form."""
        return self._encoder.encode(value)

    def decode(self, record: bytes) -> S:
        """The value of a stored record. Raises RecordUndecodable."""
        try:
            return self._decoder.decode(record)
        except UNUSABLE as error:
            raise RecordUndecodable(str(error) or type(error).__name__) from error

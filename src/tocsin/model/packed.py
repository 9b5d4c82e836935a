"""Creates in the form of a codec: texts that are ready to be stored and sent, and the few fields that the engine needs.

`tocsin.native` may have such a codec. What it makes is what Python makes of the same request, byte for byte."""

from __future__ import annotations

from typing import Protocol

from tocsin.model.timer import Timer, decode_record


class PackedTimer(Protocol):
    """A new timer that has been checked, as far as it may be without knowing its namespace. It has no tags, no headers and no
    policy of its own. `traceparent`, and `firing`, which the engine sets, belong to its record; set them before it is made.
    `keys` has the hashes of the idempotency key of a first try, as `CreateKey` has them, or nothing."""

    traceparent: str | None
    firing: str

    @property
    def namespace(self) -> str:
        """The timer's namespace."""

    @property
    def id(self) -> str:
        """The timer's id."""

    @property
    def uuid(self) -> bytes:
        """`tocsin.model.ids.timer_uuid` of them."""

    @property
    def execute_at(self) -> int:
        """The instant at which it is due, in microseconds."""

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """The hashes of its key, and of what that covers."""

    def record(self) -> bytes:
        """The stored form: `encode_record`."""

    def answer(self, shard_id: int) -> bytes:
        """The body of the answer to its client, once it is stored in that shard."""


#: A timer on its way into a part.
NewTimer = Timer | PackedTimer


def unpacked(timer: NewTimer) -> Timer:
    """The timer itself."""
    return timer if isinstance(timer, Timer) else decode_record(timer.record())

"""The codec that reads plain creates in place of Python, where `tocsin.native` has one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tocsin.model.packed import PackedTimer
from tocsin.model.redaction import redact_url, withheld
from tocsin.model.subjects import is_subject_url
from tocsin.model.validation import InputRules
from tocsin.native import native


class Codec(Protocol):
    """Reads creates that have the usual fields in their usual forms. For all others it returns None, and Python serves the
    request: whatever is wrong with it, Python finds and names."""

    def create(self, body: bytes, now_us: int, key: str | None, first_try: bool) -> PackedTimer | None:
        """The create of a request that arrived at `now_us`. `key` is the idempotency key of its header, `first_try` whether
        no key of it was sent before; one with a key that may have been is not taken."""

    def creates(
        self, body: bytes, now_us: int, key: str | None, first_try: bool, items_max: int
    ) -> Sequence[PackedTimer] | None:
        """Likewise all creates of a batch, in their order."""


def native_codec(rules: InputRules, *, seals: bool = False) -> Codec | None:
    """The codec for requests under these rules; None where Python reads them all. `seals`: Python encrypts secrets, so it
    reads creates whose URL has some."""
    module = native().module
    if module is None:
        return None
    limits = rules.limits

    def shown(url: str) -> str | None:
        """The URL as answers show it; None if Python has to look at it."""
        if withheld(url, None) or is_subject_url(url) or rules.url(url) is not None:
            return None
        redacted = redact_url(url)
        return None if seals and redacted != url else redacted

    codec = module.Codec(
        shown,
        payload_bytes_max=limits.payload_bytes_max,
        payload_depth_max=limits.payload_depth_max,
        execute_past_max_us=limits.execute_past_max_us,
        execute_ahead_max_us=limits.execute_ahead_max_us,
        id_chars_max=limits.id_chars_max,
        url_chars_max=limits.url_chars_max,
    )
    rules.verdicts.append(codec.forget_targets)
    found: Codec = codec
    return found

"""Namespaces: the scope in which timer ids are unique, and its settings."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

import msgspec

from tocsin.model.instants import US_PER_DAY
from tocsin.model.secrets import PreviousSecret, SigningSecrets

NAME = re.compile(r"[A-Za-z0-9._:-]{1,255}\Z", re.ASCII)
DEFAULT_NAMESPACE = "default"
#: Names that begin so are the server's own.
RESERVED_PREFIX = "tocsin."
#: How long finished timers stay visible where nobody said.
RETENTION_DEFAULT_US = 3 * US_PER_DAY


class HistoryMode(StrEnum):
    """Which finished timers stay visible until retention removes them."""

    ALL = "all"
    FAILURES = "failures"
    NONE = "none"


class Namespace(msgspec.Struct, frozen=True, omit_defaults=False):
    """A namespace. `num_shards` never changes once given. `secret` signs callbacks (Standard Webhooks, `whsec_…`), and so
    do `previous_secrets` until each one's instant. `version` grows by one with each change; 0: as an earlier release wrote
    it."""

    name: str
    num_shards: int
    created_at: int
    updated_at: int
    history: HistoryMode = HistoryMode.ALL
    retention_us: int = RETENTION_DEFAULT_US
    secret: str | None = None
    paused: bool = False
    version: int = 0
    previous_secrets: tuple[PreviousSecret, ...] = ()

    @property
    def signing(self) -> SigningSecrets:
        """What its callbacks are signed with."""
        return SigningSecrets(self.secret, self.previous_secrets)

    def changed(self, now_us: int, signing: SigningSecrets, **fields: Any) -> Namespace:
        """Its next version, signed with these secrets, without those whose grace is over."""
        signing = signing.kept(now_us)
        return msgspec.structs.replace(
            self,
            updated_at=now_us,
            secret=signing.secret,
            previous_secrets=signing.previous,
            version=self.version + 1,
            **fields,
        )


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Namespace)


def encode_namespace(namespace: Namespace) -> bytes:
    """The stored form: JSON text."""
    return _encoder.encode(namespace)


def decode_namespace(record: bytes) -> Namespace:
    """Reads what `encode_namespace` wrote; msgspec.DecodeError otherwise."""
    return _decoder.decode(record)

"""Namespaces: the scope in which timer ids are unique, and its settings."""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

from tocsin.model.instants import US_PER_DAY
from tocsin.model.retry import DEFAULT_POLICY, RetryPolicy

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


class Answers(StrEnum):
    """By which table a namespace's callbacks are judged: `standard`, any 2xx is done unless its body asks for something else;
    `strict`, a 2xx is done only with an empty body or `ok: true`."""

    STANDARD = "standard"
    STRICT = "strict"


class Namespace(msgspec.Struct, frozen=True, omit_defaults=False):
    """A namespace. `num_shards` never changes once given. `secret` signs callbacks (Standard Webhooks, `whsec_…`). `version`
    grows by one with each change; 0: as an earlier release wrote it. `retry` is the policy of timers without one of their
    own; None: the default. `answers` says how their callbacks' answers are judged."""

    name: str
    num_shards: int
    created_at: int
    updated_at: int
    history: HistoryMode = HistoryMode.ALL
    retention_us: int = RETENTION_DEFAULT_US
    secret: str | None = None
    paused: bool = False
    version: int = 0
    answers: Answers = Answers.STANDARD
    retry: RetryPolicy | None = None


def policy_in_force(own: RetryPolicy | None, namespace: Namespace | None) -> RetryPolicy:
    """The policy of an attempt that ends now: the timer's own, else its namespace's, else the default."""
    if own is not None:
        return own
    return DEFAULT_POLICY if namespace is None or namespace.retry is None else namespace.retry


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Namespace)


def encode_namespace(namespace: Namespace) -> bytes:
    """The stored form: JSON text."""
    return _encoder.encode(namespace)


def decode_namespace(record: bytes) -> Namespace:
    """Reads what `encode_namespace` wrote; msgspec.DecodeError otherwise."""
    return _decoder.decode(record)

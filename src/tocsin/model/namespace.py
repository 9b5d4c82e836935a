"""Namespaces: the scopes in which timer ids are unique, and their settings."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

import msgspec

from tocsin.model.batch import CallbackBatch
from tocsin.model.flow import FlowLimits
from tocsin.model.hooks import Hooks
from tocsin.model.instants import US_PER_DAY
from tocsin.model.quota import Quotas
from tocsin.model.retry import DEFAULT_POLICY, RetryPolicy
from tocsin.model.secrets import PreviousSecret, SigningSecrets

NAME = re.compile(r"[A-Za-z0-9._:-]{1,255}\Z", re.ASCII)
DEFAULT_NAMESPACE = "default"
#: Names with this prefix are reserved for the server.
RESERVED_PREFIX = "tocsin."
#: How long finished timers stay visible by default.
RETENTION_DEFAULT_US = 3 * US_PER_DAY


class HistoryMode(StrEnum):
    """Which finished timers stay visible until retention removes them."""

    ALL = "all"
    FAILURES = "failures"
    NONE = "none"


class Answers(StrEnum):
    """How responses to a namespace's callbacks are judged. `standard`: any 2xx is done unless its body asks for something
    else. `strict`: a 2xx is done only with an empty body or `ok: true`."""

    STANDARD = "standard"
    STRICT = "strict"


class Namespace(msgspec.Struct, frozen=True, omit_defaults=False):
    """A namespace and its settings.

    `num_shards` never changes. `secret` signs callbacks (Standard Webhooks, `whsec_…`), and so does each of
    `previous_secrets` until its instant. `version` is its record's: 1, and one more with each change. `retry` is
    the policy of timers without one of their own; None: the default policy. `answers` is how responses to callbacks are
    judged. `hooks` are those of timers and schedules without their own. `deleting` is the id of the job that deletes the
    namespace: while it is set, nothing of the namespace fires, is created or changed. `limits` are those of all of its
    attempts together, `quotas` those of what its clients create. `managed_by` names the declaration that it comes from.
    `callback_batch`: its callbacks are sent together, unless their flow has its own rule. `event_sink`: what becomes of its
    timers is published below this subject, given as a URL `nats://subject`."""

    name: str
    num_shards: int
    created_at: int
    updated_at: int
    history: HistoryMode = HistoryMode.ALL
    retention_us: int = RETENTION_DEFAULT_US
    secret: str | None = None
    paused: bool = False
    version: int = 1
    previous_secrets: tuple[PreviousSecret, ...] = ()
    answers: Answers = Answers.STANDARD
    retry: RetryPolicy | None = None
    hooks: Hooks | None = None
    deleting: str | None = None
    limits: FlowLimits | None = None
    quotas: Quotas | None = None
    managed_by: str | None = None
    callback_batch: CallbackBatch | None = None
    event_sink: str | None = None

    @property
    def held(self) -> bool:
        """Whether its timers do not fire: it is paused, or being deleted."""
        return self.paused or self.deleting is not None

    @property
    def signing(self) -> SigningSecrets:
        """The secrets that sign its callbacks."""
        return SigningSecrets(self.secret, self.previous_secrets)

    @property
    def damaged(self) -> str | None:
        """Why its stored record can't be read; None if it can."""
        return None

    def changed(self, now_us: int, signing: SigningSecrets, **fields: Any) -> Namespace:
        """The namespace's next version, with these fields and signing secrets. Secrets whose grace is over are dropped."""
        signing = signing.kept(now_us)
        return msgspec.structs.replace(
            self,
            updated_at=now_us,
            secret=signing.secret,
            previous_secrets=signing.previous,
            version=self.version + 1,
            **fields,
        )


class DamagedNamespace(Namespace, frozen=True):
    """A namespace whose stored record can't be read, and why. Its secrets and the shards of its timers are unknown, so its
    timers are held like those of a paused one, and its operations are refused."""

    reason: str = ""

    @property
    def damaged(self) -> str:
        return self.reason


def damaged_namespace(name: str, reason: str) -> DamagedNamespace:
    """The placeholder of a namespace whose record can't be read."""
    return DamagedNamespace(name, num_shards=1, created_at=0, updated_at=0, paused=True, version=0, reason=reason)


def policy_in_force(own: RetryPolicy | None, namespace: Namespace | None) -> RetryPolicy:
    """The retry policy for an attempt that ends now: the timer's own, else its namespace's, else the default."""
    if own is not None:
        return own
    return DEFAULT_POLICY if namespace is None or namespace.retry is None else namespace.retry

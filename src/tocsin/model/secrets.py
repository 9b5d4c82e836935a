"""Signing secrets: which of them sign now, and how a new one takes the place of another."""

from __future__ import annotations

import base64
import secrets

import msgspec

from tocsin.model.errors import RotationPending
from tocsin.model.instants import US_PER_DAY, format_instant

#: How long a replaced secret goes on signing where nobody said, and at most: receivers are updated within days, and a
#: secret that leaked has to end.
GRACE_US_DEFAULT = US_PER_DAY
GRACE_US_MAX = 30 * US_PER_DAY
#: Secrets that sign at once: each costs an HMAC and some 50 bytes of header for every attempt. More than two only when a
#: rotation is forced within the grace of another.
SIGNING_MAX = 3
#: Random bytes of a secret that is made here; Standard Webhooks asks for 24 to 64.
_SECRET_BYTES = 32


def new_secret() -> str:
    """A fresh secret, `whsec_…`."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


class PreviousSecret(msgspec.Struct, frozen=True):
    """A secret that was replaced. It signs before `until` (microseconds), and never from then on."""

    secret: str
    until: int


class SigningSecrets(msgspec.Struct, frozen=True, omit_defaults=True):
    """The secrets of a namespace or tenant: the present one, and those it replaced, the newest first. Without a present one
    nothing is signed."""

    secret: str | None = None
    previous: tuple[PreviousSecret, ...] = ()

    def at(self, now_us: int) -> tuple[str, ...]:
        """Those that sign now, the newest first; empty: nothing is signed."""
        if self.secret is None:
            return ()
        if not self.previous:
            return (self.secret,)
        return (self.secret, *(former.secret for former in self.previous if former.until > now_us))

    def kept(self, now_us: int) -> SigningSecrets:
        """The same without those whose grace is over: what to store whenever something is stored."""
        return SigningSecrets(self.secret, tuple(former for former in self.previous if former.until > now_us))

    def previous_until(self, now_us: int) -> int | None:
        """Until when another than the present one signs; None when only that one does."""
        return max((former.until for former in self.kept(now_us).previous), default=None)

    def rotated(self, fresh: str, now_us: int, grace_us: int, *, force: bool = False) -> SigningSecrets:
        """With `fresh` in the present one's place, which signs until the grace is over, as does what it had replaced itself,
        but no longer than before. `fresh` may be the present one: a request that is made again changes nothing, unless its
        grace is shorter.

        Raises RotationPending within the grace of another rotation, unless `force`.
        """
        known = self.kept(now_us)
        if known.secret is None:
            return SigningSecrets(fresh)
        if known.previous and fresh != known.secret and not force:
            raise RotationPending(
                f"the secret was rotated before, and the one it replaced signs until "
                f"{format_instant(known.previous_until(now_us) or now_us)}; wait until then, or rotate again at once with "
                "`force`"
            )
        until = now_us + grace_us
        former = (PreviousSecret(known.secret, until), *known.previous)
        shortened = [PreviousSecret(one.secret, min(one.until, until)) for one in former if one.secret != fresh]
        return SigningSecrets(fresh, tuple(shortened[: SIGNING_MAX - 1])).kept(now_us)


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(SigningSecrets)


def encode_secrets(secrets: SigningSecrets) -> str:
    """The stored form: JSON text."""
    return _encoder.encode(secrets).decode()


def decode_secrets(record: str) -> SigningSecrets:
    """Reads what `encode_secrets` wrote; msgspec.DecodeError otherwise."""
    return _decoder.decode(record)

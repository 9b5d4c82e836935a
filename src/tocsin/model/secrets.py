"""Signing secrets, their rotation, and signatures as in the Standard Webhooks specification, symmetric scheme (`v1`)."""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import Callable, Iterable
from functools import lru_cache

import msgspec

from tocsin.model.errors import RotationPending
from tocsin.model.instants import US_PER_DAY, format_instant

#: How long a replaced secret continues to sign, by default and at most: receivers are updated within days, and a leaked
#: secret must end.
GRACE_US_DEFAULT = US_PER_DAY
GRACE_US_MAX = 30 * US_PER_DAY
#: Secrets that sign at the same time: each costs an HMAC and some 50 bytes of header for every attempt. There are more than
#: two only when a rotation is forced within the grace of another.
SIGNING_MAX = 3
#: Random bytes of a generated secret; Standard Webhooks asks for 24 to 64.
_SECRET_BYTES = 32


def new_secret() -> str:
    """A new random secret, `whsec_…`."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


class PreviousSecret(msgspec.Struct, frozen=True):
    """A replaced secret. It signs before `until` (microseconds), and no longer from then on."""

    secret: str
    until: int


class SigningSecrets(msgspec.Struct, frozen=True, omit_defaults=True):
    """The secrets of a namespace or tenant: the present one, and those it replaced, newest first. Without a present one
    nothing is signed."""

    secret: str | None = None
    previous: tuple[PreviousSecret, ...] = ()

    def at(self, now_us: int) -> tuple[str, ...]:
        """The secrets that sign now, newest first; empty if nothing is signed."""
        if self.secret is None:
            return ()
        if not self.previous:
            return (self.secret,)
        return (self.secret, *(former.secret for former in self.previous if former.until > now_us))

    def stored_as(self, secret: str, unseal: Callable[[str], str]) -> str | None:
        """The stored form of one of these secrets; None if it is none of them."""
        stored = [each for each in (self.secret, *(former.secret for former in self.previous)) if each is not None]
        return next((each for each in stored if unseal(each) == secret), None)

    def opened(self, unseal: Callable[[str], str]) -> SigningSecrets:
        """The secrets in clear, as they sign."""
        if self.secret is None:
            return self
        previous = tuple(PreviousSecret(unseal(each.secret), each.until) for each in self.previous)
        return SigningSecrets(unseal(self.secret), previous)

    def kept(self, now_us: int) -> SigningSecrets:
        """The secrets without those whose grace is over. Store this form whenever something is stored."""
        return SigningSecrets(self.secret, tuple(former for former in self.previous if former.until > now_us))

    def previous_until(self, now_us: int) -> int | None:
        """The instant until which a replaced secret signs; None if only the present one signs."""
        return max((former.until for former in self.kept(now_us).previous), default=None)

    def rotated(self, fresh: str, now_us: int, grace_us: int, *, force: bool = False) -> SigningSecrets:
        """The secrets with `fresh` as the present one.

        The former one signs until the grace is over; those that it had replaced sign for at most as long, and no longer than
        before. `fresh` may be the present one, so that a repeated request changes nothing, unless its grace is shorter.
        Raises RotationPending within the grace of another rotation, unless `force`."""
        known = self.kept(now_us)
        if known.secret is None:
            return SigningSecrets(fresh)
        if known.previous and fresh != known.secret and not force:
            raise RotationPending(
                "a rotation is pending: the replaced secret signs until "
                f"{format_instant(known.previous_until(now_us) or now_us)}; wait until then, or rotate now with `force`"
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
    """Decodes what `encode_secrets` wrote. Raises msgspec.DecodeError."""
    return _decoder.decode(record)


SECRET_PREFIX = "whsec_"
#: The specification asks for keys of 24 to 64 bytes.
KEY_BYTES_MIN = 24
KEY_BYTES_MAX = 64


class InvalidSecret(ValueError):
    """The secret is not `whsec_` followed by the base64 of 24 to 64 bytes. The message never contains the secret."""


@lru_cache(maxsize=1_024)
def _key(secret: str) -> bytes:
    if not secret.startswith(SECRET_PREFIX):
        raise InvalidSecret(f"must begin with {SECRET_PREFIX}")
    try:
        key = base64.b64decode(secret[len(SECRET_PREFIX) :], validate=True)
    except (binascii.Error, ValueError):
        raise InvalidSecret(f"is not valid base64 after {SECRET_PREFIX}") from None
    if not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        raise InvalidSecret(f"has {len(key)} bytes; {KEY_BYTES_MIN} to {KEY_BYTES_MAX} are required")
    return key


def sign(secret: str, message_id: str, timestamp_s: int, body: bytes) -> str:
    """The signature of a message; `timestamp_s` is its `webhook-timestamp`, in seconds since 1970.

    Raises InvalidSecret.
    """
    content = b"%b.%d.%b" % (message_id.encode(), timestamp_s, body)
    return "v1," + binascii.b2a_base64(hmac.digest(_key(secret), content, "sha256"), newline=False).decode()


def signatures(secrets: Iterable[str], message_id: str, timestamp_s: int, body: bytes) -> str:
    """The `webhook-signature` of a message: one signature for each secret, in their order, separated by spaces. A receiver
    that knows any of the secrets accepts the message. Raises InvalidSecret."""
    return " ".join([sign(secret, message_id, timestamp_s, body) for secret in secrets])

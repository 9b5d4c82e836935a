"""How two nodes prove to each other that they know the cluster's secret, without sending it.

The accepting node sends a nonce and its incarnation. The dialing node answers with its own nonce and incarnation and a
MAC over all four. The accepting node proves itself with another MAC. A dialing node that meets an unexpected
incarnation disconnects. The frame keys of the two directions are derived from the same secret and nonces: every frame
has a MAC that includes its number, so that no frame can be changed, dropped, repeated or moved to another connection.
Nothing is encrypted. Under TLS, which does all of that and encrypts, frames have no MAC.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import blake2b, sha256
from typing import NamedTuple

#: Name and version of the protocol, the first bytes of each connection.
GREETING = b"TOCSIN-PEERS/1 "
NONCE_BYTES = 32
MAC_BYTES = 16
_INCARNATION_BYTES = 16
HELLO_BYTES = len(GREETING) + NONCE_BYTES + _INCARNATION_BYTES
PROOF_BYTES = NONCE_BYTES + _INCARNATION_BYTES + 32
WELCOME_BYTES = 32


class Seal:
    """Creates or verifies the MACs of the frames of one direction, in order."""

    size = MAC_BYTES

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._number = 0

    def of(self, payload: bytes) -> bytes:
        """The MAC of the next frame."""
        mac = blake2b(self._number.to_bytes(8, "big"), digest_size=MAC_BYTES, key=self._key)
        mac.update(payload)
        self._number += 1
        return mac.digest()

    def fits(self, payload: bytes, mac: bytes) -> bool:
        """Whether this is the MAC of the next frame, compared in constant time."""
        return hmac.compare_digest(self.of(payload), mac)


class NoSeal:
    """Stands for the seal of frames under TLS."""

    size = 0

    def of(self, payload: bytes) -> bytes:
        """Empty."""
        return b""

    def fits(self, payload: bytes, mac: bytes) -> bool:
        """Whether there is none."""
        return not mac


class Seals(NamedTuple):
    """The seals for frames from the dialing node and for frames from the accepting node."""

    caller: Seal | NoSeal
    called: Seal | NoSeal


UNSEALED = Seals(NoSeal(), NoSeal())


class Handshake:
    """One side of a handshake. `own` and the incarnations are 16 bytes; nonces are cryptographically random. The accepting
    node takes a proof with `former`, too, and then proves itself with that."""

    def __init__(self, secret: str, own: bytes, nonce: bytes, *, former: str | None = None) -> None:
        self._secret = secret.encode()
        self._accepted = (self._secret,) if former is None else (self._secret, former.encode())
        self._own = own
        self._nonce = nonce

    def _mac(self, label: bytes, transcript: bytes) -> bytes:
        return hmac.digest(self._secret, GREETING + label + transcript, sha256)

    def _seals(self, transcript: bytes) -> Seals:
        return Seals(Seal(self._mac(b"caller frames", transcript)), Seal(self._mac(b"called frames", transcript)))

    # -- the accepting node

    def hello(self) -> bytes:
        """The first message."""
        return GREETING + self._nonce + self._own

    def check_proof(self, proof: bytes) -> tuple[bytes, bytes, Seals] | None:
        """The dialing node's incarnation, the welcome to send, and the seals; None if it does not know the secret."""
        if len(proof) != PROOF_BYTES:
            return None
        theirs, mac = proof[:-32], proof[-32:]
        transcript = self._nonce + self._own + theirs
        for secret in self._accepted:
            self._secret = secret
            if hmac.compare_digest(self._mac(b"caller", transcript), mac):
                break
        else:
            return None
        return theirs[NONCE_BYTES:], self._mac(b"called", transcript), self._seals(transcript)

    # -- the dialing node

    def prove(self, hello: bytes, expected: bytes) -> tuple[bytes, bytes, Seals] | None:
        """The proof to send, the welcome to expect, and the seals; None if this is not the expected node."""
        if len(hello) != HELLO_BYTES or not hello.startswith(GREETING) or hello[-_INCARNATION_BYTES:] != expected:
            return None
        own = self._nonce + self._own
        transcript = hello[len(GREETING) :] + own
        proof = own + self._mac(b"caller", transcript)
        return proof, self._mac(b"called", transcript), self._seals(transcript)


_MARK_BYTES = 8
#: Parameters of scrypt: 16 MiB and some 50 ms a guess. Whoever can read the store sees the marks.
_SCRYPT_N, _SCRYPT_R, _SCRYPT_P = 2**14, 8, 1


def mark_of_chosen(secret: str, salt: str) -> str:
    """The mark of a secret that people may have chosen: a slow hash, so that guessing it from the mark is expensive. `salt`
    is the store's."""
    return hashlib.scrypt(
        secret.encode(), salt=salt.encode(), n=_SCRYPT_N, r=_SCRYPT_R, p=_SCRYPT_P, dklen=_MARK_BYTES
    ).hex()


def mark_of_stored(secret: str, salt: str) -> str:
    """The mark of the random secret that the store keeps: whoever can read the mark can read the secret as well."""
    return hashlib.blake2b(secret.encode(), salt=salt.encode()[:16], digest_size=_MARK_BYTES).hexdigest()


@dataclass(frozen=True, slots=True)
class ClusterSecrets:
    """The secret with which this node proves itself and, while it is being replaced, the `former` one, which it accepts from
    others and uses towards nodes that know no other. `marks` are theirs, in this order; empty: not announced."""

    current: str
    former: str | None = None
    marks: tuple[str, ...] = ()

    @property
    def accepted(self) -> tuple[str, ...]:
        """All of them, the current one first."""
        return (self.current,) if self.former is None else (self.current, self.former)

    def known_to(self, marks: Collection[str]) -> str | None:
        """The first secret that a node with these marks knows as well; None if it knows none. Without marks, the current
        one."""
        if not (marks and self.marks):
            return self.current
        return next((secret for secret, mark in zip(self.accepted, self.marks, strict=True) if mark in marks), None)

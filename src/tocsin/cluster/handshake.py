"""How two nodes prove to one another that they know the cluster's secret, which itself is never sent.

The node that was called begins with a nonce and its incarnation; the caller answers with its own and a MAC over all four;
the other proves itself by a MAC of its own. A caller that meets another incarnation than it meant goes away. The keys of the
two directions come from the same secret and nonces: every frame bears a MAC with its number, so that none can be changed,
left out, repeated or moved to another connection. Nothing is encrypted.
"""

from __future__ import annotations

import hmac
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
    """Makes or checks the MACs of one direction's frames, in order."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._number = 0

    def of(self, payload: bytes) -> bytes:
        """The next frame's MAC."""
        mac = blake2b(self._number.to_bytes(8, "big"), digest_size=MAC_BYTES, key=self._key)
        mac.update(payload)
        self._number += 1
        return mac.digest()

    def fits(self, payload: bytes, mac: bytes) -> bool:
        """Whether this is the next frame's, in constant time."""
        return hmac.compare_digest(self.of(payload), mac)


class Seals(NamedTuple):
    """Of the frames that the caller sends, and of those it gets."""

    caller: Seal
    called: Seal


class Handshake:
    """One side's view of a handshake. `own` and the incarnations are 16 bytes; nonces come from the system's source."""

    def __init__(self, secret: str, own: bytes, nonce: bytes) -> None:
        self._secret = secret.encode()
        self._own = own
        self._nonce = nonce

    def _mac(self, label: bytes, transcript: bytes) -> bytes:
        return hmac.digest(self._secret, GREETING + label + transcript, sha256)

    def _seals(self, transcript: bytes) -> Seals:
        return Seals(Seal(self._mac(b"caller frames", transcript)), Seal(self._mac(b"called frames", transcript)))

    # -- of the node that was called

    def hello(self) -> bytes:
        """The first message."""
        return GREETING + self._nonce + self._own

    def check_proof(self, proof: bytes) -> tuple[bytes, bytes, Seals] | None:
        """The caller's incarnation, the welcome to send it, and the seals; None: it doesn't know the secret."""
        if len(proof) != PROOF_BYTES:
            return None
        theirs, mac = proof[:-32], proof[-32:]
        transcript = self._nonce + self._own + theirs
        if not hmac.compare_digest(self._mac(b"caller", transcript), mac):
            return None
        return theirs[NONCE_BYTES:], self._mac(b"called", transcript), self._seals(transcript)

    # -- of the caller

    def prove(self, hello: bytes, expected: bytes) -> tuple[bytes, bytes, Seals] | None:
        """The proof to send, the welcome to expect, and the seals; None: that is not the node that was meant."""
        if len(hello) != HELLO_BYTES or not hello.startswith(GREETING) or hello[-_INCARNATION_BYTES:] != expected:
            return None
        own = self._nonce + self._own
        transcript = hello[len(GREETING) :] + own
        proof = own + self._mac(b"caller", transcript)
        return proof, self._mac(b"called", transcript), self._seals(transcript)

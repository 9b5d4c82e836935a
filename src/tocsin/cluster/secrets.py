"""The secrets by which nodes authenticate one another, and the marks by which they know beforehand whether they will."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

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

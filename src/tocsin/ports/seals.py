"""The port that encrypts secrets before anything stores them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from tocsin.model.sealed_text import is_sealed, key_ids_in
from tocsin.model.secrets import SigningSecrets


class Seals(Protocol):
    """Secrets as the store may have them. The same text in the same context gives the same sealed text under one key, so that
    sealed secrets can be compared; a context is what the secret belongs to, as `namespace:orders`. Seal a secret where it
    arrives, once, and open it only where it is used."""

    def seal(self, text: str, context: str) -> str:
        """The text as it is stored. A text that looks sealed is sealed like any other: it was not sealed here."""
        ...

    def open(self, sealed: str, context: str) -> str:
        """The text that was sealed in this context. What was stored in clear is returned as it is. Raises SealBroken if the
        key is missing, or the text was changed or comes from another context."""
        ...


class SealBroken(Exception):
    """A sealed secret that cannot be opened. Its text names the key and the mend, never the secret."""


def sealer(seals: Seals, name: str, kind: str = "namespace") -> Callable[[str], str]:
    """Seals secrets of a namespace, or of another owner of that name."""
    return lambda text: seals.seal(text, f"{kind}:{name}")


def opener(seals: Seals, name: str, kind: str = "namespace") -> Callable[[str], str]:
    """Opens secrets of a namespace, or of another owner of that name. What it returns raises SealBroken."""
    return lambda sealed: seals.open(sealed, f"{kind}:{name}")


def stored_like(known: SigningSecrets, secret: str, seal: Callable[[str], str], unseal: Callable[[str], str]) -> str:
    """The signing secret as it is stored already, perhaps under a former key, else newly sealed."""
    with suppress(SealBroken):
        if (stored := known.stored_as(secret, unseal)) is not None:
            return stored
    return seal(secret)


class NoSeals:
    """Stores secrets in clear: no key is set."""

    def seal(self, text: str, context: str) -> str:
        return text

    def open(self, sealed: str, context: str) -> str:
        if is_sealed(sealed):
            raise SealBroken(missing_key(key_ids_in(sealed).pop()))
        return sealed


def missing_key(key_id: str) -> str:
    """Why a secret under that key can't be opened."""
    return f"it is encrypted with key {key_id}, which this node does not have; add the key to its secrets.key_file"

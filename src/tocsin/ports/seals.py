"""The port that encrypts secrets before anything stores them."""

from __future__ import annotations

from typing import Protocol


class Seals(Protocol):
    """Secrets as the store may have them. The same text in the same context gives the same sealed text under one key, so that
    sealed secrets can be compared; a context is what the secret belongs to, as `namespace:orders`."""

    def seal(self, text: str, context: str) -> str:
        """The text as it is stored. What is sealed already stays as it is."""
        ...

    def open(self, sealed: str, context: str) -> str:
        """The text that was sealed in this context. What was stored in clear is returned as it is. Raises SealBroken if the
        key is missing, or the text was changed or comes from another context."""
        ...


class SealBroken(Exception):
    """A sealed secret that cannot be opened. Its text names the key and the mend, never the secret."""


class NoSeals:
    """Stores secrets in clear: no key is set."""

    def seal(self, text: str, context: str) -> str:
        return text

    def open(self, sealed: str, context: str) -> str:
        return sealed

"""Secrets under envelopes: AES-GCM with keys that the store does not have.

Each context of a key has data keys of its own, derived with HKDF. The nonce is a HMAC of the text, so that the same secret
gives the same sealed text in one context, and reveals nothing about it in another.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tocsin.model.sealed_text import SEALED, SEALED_PREFIX
from tocsin.model.setting import setting
from tocsin.ports.seals import SealBroken, missing_key

#: Random bytes of a key.
KEY_BYTES = 32
#: Secrets whose sealed and open forms are kept in memory, each way: those of a busy node's timers are few, and repeat. Longer
#: ones are reckoned each time, so that clients can't fill the memory.
_REMEMBERED = 4_096
_REMEMBERED_CHARS_MAX = 1_024
_CONTEXTS_REMEMBERED = 1_024
_NONCE_BYTES = 12
_HEX = re.compile(r"[0-9a-fA-F]{64}")
_COMMENT = re.compile(r"#[^\n]*")


@dataclass(frozen=True, slots=True)
class SecretsOptions:
    """Where the keys are under which secrets are encrypted."""

    key: str | None = setting(
        None,
        "Key under which secrets are encrypted before they are stored: 32 random bytes in hexadecimal or base64, as from "
        "`openssl rand -hex 32`. Several are separated by spaces: the first encrypts, all decrypt. Every node of a store "
        "needs the same keys; without one, its secrets are lost. Unset, also `secrets.key_file` and `secrets.key_command`: a "
        "SQLite store makes the file `secrets.key` beside its database; other stores keep secrets unencrypted.",
    )
    key_file: Path | None = setting(
        None, "File with the keys of `secrets.key`, one on each line; lines that begin with `#` are comments."
    )
    key_command: str | None = setting(
        None,
        "Command whose output has the keys like `secrets.key_file`, such as a client of a key management service. The server "
        "runs it at each start, without a shell, and waits 30 seconds at most.",
    )


class BadKeys(ValueError):
    """What should be keys is none. Its text follows the name of its source, and shows nothing of them."""


def parse_keys(text: str) -> list[bytes]:
    """The keys in a text: each in hexadecimal or base64, separated by white space, without comments. Raises BadKeys."""
    keys = [_key(word, place) for place, word in enumerate(_COMMENT.sub("", text).split(), 1)]
    if not keys:
        raise BadKeys("has no key; write one into it, such as from openssl rand -hex 32")
    return keys


def _key(word: str, place: int) -> bytes:
    try:
        key = bytes.fromhex(word) if _HEX.fullmatch(word) else base64.b64decode(word, validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise BadKeys(
            f"has a key (number {place}) that is not {KEY_BYTES} bytes in hexadecimal or base64; make one with "
            "openssl rand -hex 32"
        )
    return key


def key_id(key: bytes) -> str:
    """The name of a key, which sealed texts have: it distinguishes keys, and reveals nothing of them."""
    return hashlib.sha256(b"tocsin secrets key id\0" + key).hexdigest()[:12]


class KeySeals:
    """Seals with the first of some keys of 32 bytes, and opens what any of them sealed."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys:
            raise ValueError("at least one key is required")
        #: The keys by their ids, in their order.
        self._keys = {key_id(key): key for key in keys}
        #: The ids of the keys; the first one seals.
        self.ids = tuple(self._keys)
        self._data_keys = lru_cache(_CONTEXTS_REMEMBERED)(self._derived)
        self._sealed = lru_cache(_REMEMBERED)(self._seal)
        self._opened = lru_cache(_REMEMBERED)(self._open)

    def seal(self, text: str, context: str) -> str:
        """The text as it is stored, under the first key."""
        return (self._sealed if len(text) <= _REMEMBERED_CHARS_MAX else self._seal)(text, context)

    def open(self, sealed: str, context: str) -> str:
        """The text that was sealed in this context; one that is not sealed as it is. Raises SealBroken."""
        if not sealed.startswith(SEALED_PREFIX):
            return sealed
        return (self._opened if len(sealed) <= _REMEMBERED_CHARS_MAX else self._open)(sealed, context)

    def _derived(self, name: str, context: str) -> tuple[AESGCM, bytes]:
        """What encrypts in a context, and the key of its nonces."""
        info = b"tocsin secrets 1\0" + context.encode()
        derived = HKDF(SHA256(), 2 * KEY_BYTES, salt=None, info=info).derive(self._keys[name])
        return AESGCM(derived[:KEY_BYTES]), derived[KEY_BYTES:]

    def _seal(self, text: str, context: str) -> str:
        name = self.ids[0]
        cipher, nonce_key = self._data_keys(name, context)
        data = text.encode()
        nonce = hmac.digest(nonce_key, data, "sha256")[:_NONCE_BYTES]
        sealed = nonce + cipher.encrypt(nonce, data, _bound_to(name, context))
        return f"{SEALED_PREFIX}{name}.{base64.urlsafe_b64encode(sealed).rstrip(b'=').decode()}"

    def _open(self, sealed: str, context: str) -> str:
        match = SEALED.fullmatch(sealed)
        if match is None:
            return sealed
        name, content = match.groups()
        if name not in self._keys:
            raise SealBroken(missing_key(name))
        cipher, _ = self._data_keys(name, context)
        try:
            data = base64.b64decode(content + "=" * (-len(content) % 4), altchars=b"-_", validate=True)
            return cipher.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], _bound_to(name, context)).decode()
        except (InvalidTag, binascii.Error, ValueError):
            raise SealBroken(
                f"it was changed in the store, or moved there from another place than {context}; send the secret again"
            ) from None


def _bound_to(name: str, context: str) -> bytes:
    return f"{name}\0{context}".encode()

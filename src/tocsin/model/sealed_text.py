"""The form of sealed secrets, which distinguishes them from texts in clear."""

from __future__ import annotations

import re

#: How a sealed text begins.
SEALED_PREFIX = "tsl1."
#: A sealed text: the form's name, the id of the key, and what the key made of the secret, which is at least a nonce and an
#: authentication tag. Its characters are legal in a header's value and in a URL's query.
SEALED = re.compile(r"tsl1\.([0-9a-f]{12})\.([A-Za-z0-9_-]{38,})")


def is_sealed(text: str) -> bool:
    """Whether the text is a sealed one."""
    return text.startswith(SEALED_PREFIX) and SEALED.fullmatch(text) is not None


def has_sealed(text: str) -> bool:
    """Whether a part of the text is a sealed one."""
    return SEALED_PREFIX in text and SEALED.search(text) is not None


def key_ids_in(text: str) -> set[str]:
    """The ids of the keys under which parts of the text are sealed."""
    return {match[1] for match in SEALED.finditer(text)} if SEALED_PREFIX in text else set()

"""The URL and the key of a client, as they are given."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from tocsin_client._error_bases import InvalidArgument, InvalidType

_UNWRITABLE = re.compile(r"[\s\x00-\x20\x7f-\x9f]")
_KEY = re.compile(r"[\x21-\x7e]+")


def base_of(url: str) -> str:
    """The URL that paths are appended to. InvalidArgument: it is not one of a server."""
    if not isinstance(url, str):
        raise InvalidType(f"url: must be a text, not {type(url).__name__}; write it as http://127.0.0.1:8080")
    problem = _problem_of(url)
    if problem is not None:
        raise InvalidArgument(f"url: {problem}; write it as http://127.0.0.1:8080 or https://host/prefix")
    return url.rstrip("/")


def _problem_of(url: str) -> str | None:
    """Does not show the URL, which may have a password."""
    if _UNWRITABLE.search(url):
        return "has a space or a control character"
    if not url.lower().startswith(("http://", "https://")):
        return "is not an http or https URL"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "has an invalid host or port"
    if "@" in parts.netloc:
        return "has a user name or password, which is not sent; give the API key as `key`"
    if not parts.hostname:
        return "has no host"
    if port == 0 or parts.netloc.endswith(":"):
        return "has an invalid port"
    if "?" in url or "#" in url:
        return "has a query or a fragment"
    return None


def key_of(key: str) -> str:
    """The API key without white space around it. InvalidArgument: it is none; the message does not show it."""
    if not isinstance(key, str):
        raise InvalidType(
            f"key: must be a text, not {type(key).__name__}; give the key as `tocsin keys create` printed it"
        )
    trimmed = key.strip()
    if not trimmed:
        raise InvalidArgument("key: is empty; give the key as `tocsin keys create` printed it, or leave it out")
    if not _KEY.fullmatch(trimmed):
        raise InvalidArgument(
            "key: has a character that no key has; give the key as `tocsin keys create` printed it, on one line"
        )
    return trimmed

"""Values as people write them: each function makes one kind of value, or says why it can't.

All raise ValueError, whatever is wrong, because pydantic collects no other error. Reasons follow the value in a sentence.
"""

# ruff: noqa: TRY004 (see above)

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import BeforeValidator

from tocsin.callbacks.egress import EgressPolicy
from tocsin.model.errors import ConfigError
from tocsin.model.instants import parse_duration
from tocsin.model.redaction import is_secret_name

SCHEMES = (
    "sqlite:///path",
    "postgresql://user@host/database",
    "mysql://user@host/database",
    "dynamodb://table",
    "memory://",
)
_SCHEMES_TEXT = ", ".join(SCHEMES[:-1]) + " and " + SCHEMES[-1]

_BYTES = re.compile(r"(\d+)\s*(B|KiB|MiB|GiB)?\Z", re.IGNORECASE | re.ASCII)
_BYTES_UNIT = {"b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def duration(value: object, *, least: int = 1) -> int:
    """Microseconds of a text such as `5m`, at least `least`."""
    if isinstance(value, bool) or not isinstance(value, str):
        raise ValueError("is not a duration; write it as 500ms, 30s, 5m, 24h or 7d, in quotes")
    duration_us = parse_duration(value.strip())
    if duration_us < least:
        raise ValueError("has to be longer than nothing")
    return duration_us


def count(value: object, *, least: int = 1, most: int = 2**62) -> int:
    """A whole number from `least` to `most`, also as text."""
    if isinstance(value, str) and value.strip().removeprefix("-").isascii():
        text = value.strip().replace("_", "")
        value = int(text) if text.removeprefix("-").isdigit() else value
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("is not a whole number")
    if value < least:
        raise ValueError(f"has to be at least {least}")
    if value > most:
        raise ValueError(f"has to be at most {most}")
    return value


def byte_count(value: object, *, least: int = 1) -> int:
    """A number of bytes, also as text with a binary unit."""
    match = _BYTES.match(value.strip()) if isinstance(value, str) else None
    if match is not None:
        return count(int(match[1]) * _BYTES_UNIT[(match[2] or "b").lower()], least=least)
    try:
        return count(value, least=least)
    except ValueError as error:
        raise ValueError(f"{error}; write bytes as 65536 or 64KiB, 64MiB, 1GiB") from None


def factor(value: object) -> float:
    """A number of at least 1."""
    try:
        number = float(cast(Any, value))
    except (TypeError, ValueError):
        raise ValueError("is not a number") from None
    if isinstance(value, bool) or not 1 <= number < float("inf"):
        raise ValueError("has to be a number of at least 1")
    return number


def yes_no(value: object) -> object:
    """A truth value, also as one of the usual words; None stays None."""
    if isinstance(value, str):
        if value.strip().lower() in _TRUE:
            return True
        if value.strip().lower() in _FALSE:
            return False
    if value is None or isinstance(value, bool):
        return value
    raise ValueError("is neither true nor false")


def words(value: object) -> object:
    """A list; in the environment and in flags, words with commas between."""
    if isinstance(value, str):
        return [word for part in value.split(",") if (word := part.strip())]
    if isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
        return list(value)
    raise ValueError('is not a list of texts; write it as ["one", "two"], in the environment as one,two')


def egress_entries(entries: list[str]) -> list[str]:
    """Entries that the egress guard understands."""
    try:
        EgressPolicy(allow=entries)
    except ConfigError as error:
        raise ValueError(str(error).removeprefix("egress.allow: ")) from None
    return entries


def origins(entries: list[str]) -> list[str]:
    """Schemes with hosts and nothing more."""
    for entry in entries:
        try:
            parts = urlsplit(entry)
            whole = parts.scheme in ("http", "https") and parts.hostname and not (parts.username or parts.port == 0)
        except ValueError:
            whole = False
        if not whole or entry != f"{parts.scheme}://{parts.netloc}":
            raise ValueError(f"{entry!r} is no origin; write it as https://tocsin.example, without a path")
    return entries


def one_of(choices: tuple[str, ...], value: object) -> str:
    """One of the choices, in their own case."""
    for choice in choices:
        if isinstance(value, str) and value.strip().lower() == choice.lower():
            return choice
    raise ValueError(f"is none of {', '.join(choices)}")


def store_address(value: object) -> object:
    """The URL of a store that there is an adapter for. Other usual schemes, `postgres` and `mariadb`, become the one
    that is used here."""
    if not isinstance(value, str):
        raise ValueError(f"is not a URL; there are {_SCHEMES_TEXT}")
    if value.startswith("postgres://"):
        value = "postgresql" + value.removeprefix("postgres")
    if value.startswith("mariadb://"):
        value = "mysql" + value.removeprefix("mariadb")
    scheme = urlsplit(value).scheme
    if scheme not in ("sqlite", "postgresql", "mysql", "dynamodb", "memory") or "://" not in value:
        named = f"{scheme}://" if "://" in value else "a URL without scheme://"
        raise ValueError(f"names {named}, for which there is no adapter; there are {_SCHEMES_TEXT}")
    if scheme == "sqlite" and (not value.startswith("sqlite:///") or value == "sqlite:///"):
        raise ValueError("has no path; write sqlite:///relative/tocsin.db or sqlite:////absolute/tocsin.db")
    return value


def broker_address(value: object) -> object:
    """The URL of a broker that there is an adapter for; `embedded` stands for none."""
    if isinstance(value, str) and value.strip().lower() in ("embedded", "embedded://"):
        return None
    if not isinstance(value, str) or urlsplit(value).scheme not in ("nats", "tls") or not urlsplit(value).netloc:
        raise ValueError("is no broker's URL; write nats://host:4222, or embedded for none")
    return value


def subject_prefix(value: object) -> str:
    """One token of a subject."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", value):
        raise ValueError("is no prefix; 1 to 32 of A-Z a-z 0-9 _ -")
    return value


def database_address(value: object) -> object:
    """The URL of an SQLite file or a PostgreSQL database; a bare path is a file's."""
    if not isinstance(value, str) or not value:
        raise ValueError("is neither a path nor a URL; there are sqlite:///path and postgresql://…")
    if "://" not in value:
        return f"sqlite:///{value}"
    scheme = urlsplit(value).scheme
    if scheme not in ("sqlite", "postgresql", "postgres"):
        raise ValueError(
            f"names {scheme}://, for which there is no adapter; there are sqlite:///path and postgresql://…"
        )
    if scheme == "sqlite" and value != "sqlite://" and (not value.startswith("sqlite:///") or value == "sqlite:///"):
        raise ValueError("has no path; write sqlite:///relative/agent.db or sqlite:////absolute/agent.db")
    return value


Duration = Annotated[int, BeforeValidator(duration)]
Count = Annotated[int, BeforeValidator(count)]
Bytes = Annotated[int, BeforeValidator(byte_count)]
YesNo = Annotated[bool, BeforeValidator(yes_no)]
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "console", "json"]
Synchronous = Literal["FULL", "NORMAL"]
AgentTimer = Literal["polling", "engine"]


#: What stands before a URL's host: up to the last @ before the query, whatever a password has in it. A file has no host.
_CREDENTIALS = re.compile(r"(\w+)://(?!/)([^?#\s]*)@")
#: Databases have users with names; what else stands alone before a host is a token.
_WITH_USERS = frozenset({"postgresql", "postgres", "mysql", "mariadb"})
_ADDRESS_BEGINS = re.compile(r"(?<=,)\s*(?=\w+://)")
_PARAMETER = re.compile(r"([?&])([^?=&\s]+)=([^&\s,]*)")


def redacted(text: str) -> str:
    """The text with the secrets of the URLs in it, which may be several with commas between them, replaced by three dots:
    passwords and tokens before the host, and among the parameters."""
    return "".join(map(_redacted_address, _ADDRESS_BEGINS.split(text)))


def _redacted_address(text: str) -> str:
    text = _CREDENTIALS.sub(_redacted_credentials, text)
    return _PARAMETER.sub(lambda found: f"{found[1]}{found[2]}={'…' if is_secret_name(found[2]) else found[3]}", text)


def _redacted_credentials(found: re.Match[str]) -> str:
    user, colon, _ = found[2].partition(":")
    if colon:
        return f"{found[1]}://{user}:…@"
    return f"{found[0]}" if found[1].lower() in _WITH_USERS else f"{found[1]}://…@"


def networks(entries: list[str]) -> list[str]:
    """Addresses and networks."""
    for entry in entries:
        try:
            ipaddress.ip_network(entry)
        except ValueError:
            raise ValueError(f"{entry!r} is no address or network; write it as 127.0.0.1 or 10.0.0.0/24") from None
    return entries


SECRET_CHARS_MIN = 16


def secret(value: object) -> str:
    """A secret that can't be guessed by trying."""
    if not isinstance(value, str) or len(value) < SECRET_CHARS_MIN:
        raise ValueError(f"has to have at least {SECRET_CHARS_MIN} characters")
    if not _is_text(value):
        raise ValueError("is no UTF-8 text")
    return value


def _is_text(value: str) -> bool:
    """Bytes of the environment that are no UTF-8 come as lone surrogates, which nothing can be made of again."""
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


NODE_NAME_CHARS_MAX = 255


def name_of_node(value: object) -> str | None:
    """A name that every store can keep, and people can read; None for an empty one."""
    if not isinstance(value, str) or len(value) > NODE_NAME_CHARS_MAX:
        raise ValueError(f"is no name of at most {NODE_NAME_CHARS_MAX} characters")
    if not value.isprintable():
        raise ValueError("has characters that can't be shown")
    return value or None


_PEER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:(\d{1,5}))?\Z", re.ASCII)


def peer_address(value: object) -> str:
    """`host` or `host:port`; an IPv6 address stands in brackets."""
    match = _PEER.match(value) if isinstance(value, str) else None
    if match is None or (match[3] and not 0 < int(match[3]) < 65_536) or not _is_host(match[1]):
        raise ValueError("is no address; write it as 10.0.0.5, timers-1.internal:9070 or [fd00::5]:9070")
    if match[1] in ("0.0.0.0", "[::]"):
        raise ValueError("stands for every address of a machine; name the one at which others find it")
    return match[0]


def _is_host(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        # A name, then; they have no brackets.
        return not host.startswith("[")
    return True

"""Kinds of values: each function turns the text that people write into one, or raises ValueError with the reason.

All raise ValueError, and no other error. A message continues a sentence that
begins with the value: `port: 'x' is not a whole number`.
"""

# ruff: noqa: TRY004 (see above)

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from urllib.parse import urlsplit

from tocsin.model.instants import parse_duration
from tocsin.model.namespace import NAME
from tocsin.model.redaction import is_secret_name
from tocsin.model.subjects import parse_target

SCHEMES = (
    "sqlite:///path",
    "postgresql://user@host/database",
    "mysql://user@host/database",
    "dynamodb://table",
    "cassandra://host/keyspace",
    "mongodb://host/database",
    "memory://",
)
_SCHEMES_TEXT = ", ".join(SCHEMES[:-1]) + " or " + SCHEMES[-1]

_BYTES = re.compile(r"(\d+)\s*(B|KiB|MiB|GiB)?\Z", re.IGNORECASE | re.ASCII)
_BYTES_UNIT = {"b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def duration(value: object, *, least: int = 1) -> int:
    """Microseconds of a text such as `5m`. Raises ValueError below `least`."""
    if isinstance(value, bool) or not isinstance(value, str):
        raise ValueError("is not a duration; write it as 500ms, 30s, 5m, 24h or 7d, in quotes")
    duration_us = parse_duration(value.strip())
    if duration_us < least:
        raise ValueError("must be greater than zero")
    return duration_us


def count(value: object, *, least: int = 1, most: int = 2**62) -> int:
    """A whole number from `least` to `most`, also as text."""
    if isinstance(value, str) and value.strip().removeprefix("-").isascii():
        text = value.strip().replace("_", "")
        value = int(text) if text.removeprefix("-").isdigit() else value
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("is not a whole number")
    if value < least:
        raise ValueError(f"must be at least {least}")
    if value > most:
        raise ValueError(f"must be at most {most}")
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


def yes_no(value: object) -> object:
    """A truth value, also as one of the usual words; None stays None."""
    if isinstance(value, str):
        if value.strip().lower() in _TRUE:
            return True
        if value.strip().lower() in _FALSE:
            return False
    if value is None or isinstance(value, bool):
        return value
    raise ValueError("is not true or false")


def words(value: object) -> tuple[str, ...]:
    """A list; in the environment and in flags, words with commas between."""
    if isinstance(value, str):
        return tuple(word for part in value.split(",") if (word := part.strip()))
    if isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
        return tuple(value)
    raise ValueError('is not a list of strings; write it as ["one", "two"], in the environment as one,two')


def origins(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Schemes with hosts and nothing more."""
    for entry in entries:
        try:
            parts = urlsplit(entry)
            whole = parts.scheme in ("http", "https") and parts.hostname and not (parts.username or parts.port == 0)
        except ValueError:
            whole = False
        if not whole or entry != f"{parts.scheme}://{parts.netloc}":
            raise ValueError(f"{entry!r} is not an origin; write it as https://tocsin.example, without a path")
    return entries


def one_of(choices: tuple[str, ...], value: object) -> str:
    """One of the choices, in their own case."""
    for choice in choices:
        if isinstance(value, str) and value.strip().lower() == choice.lower():
            return choice
    raise ValueError(f"is not one of {', '.join(choices)}")


def store_address(value: object) -> object:
    """The URL of a store of a supported kind. The schemes `postgres` and `mariadb` become `postgresql` and `mysql`."""
    if not isinstance(value, str):
        raise ValueError(f"is not a URL; use {_SCHEMES_TEXT}")
    if value.startswith("postgres://"):
        value = "postgresql" + value.removeprefix("postgres")
    if value.startswith("mariadb://"):
        value = "mysql" + value.removeprefix("mariadb")
    scheme = urlsplit(value).scheme
    if (
        scheme not in ("sqlite", "postgresql", "mysql", "dynamodb", "cassandra", "mongodb", "mongodb+srv", "memory")
        or "://" not in value
    ):
        fault = f"has the scheme {scheme}://, which is not supported" if "://" in value else "has no scheme"
        raise ValueError(f"{fault}; use {_SCHEMES_TEXT}")
    if scheme == "sqlite" and (not value.startswith("sqlite:///") or value == "sqlite:///"):
        raise ValueError("has no path; write sqlite:///relative/tocsin.db or sqlite:////absolute/tocsin.db")
    return well_formed(value)


def broker_address(value: object) -> object:
    """The URL of a supported broker; None for `embedded`, which stands for none."""
    if isinstance(value, str) and value.strip().lower() in ("embedded", "embedded://"):
        return None
    if not isinstance(value, str) or urlsplit(value).scheme not in ("nats", "tls") or not urlsplit(value).netloc:
        raise ValueError("is not a broker's URL; write nats://host:4222, or embedded for none")
    return value


def subject_targets(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Namespaces with NATS subjects to which their timers may be published."""
    for entry in entries:
        parse_target(entry)
    return entries


def subject_prefix(value: object) -> str:
    """A prefix that is one token of a NATS subject."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", value):
        raise ValueError("is not a prefix; use 1 to 32 characters of A-Z a-z 0-9 _ -")
    return value


def namespace_name(value: object) -> str:
    """The name of a namespace."""
    if not isinstance(value, str) or not NAME.match(value):
        raise ValueError("is not a namespace's name; use 1 to 255 characters of A-Z a-z 0-9 . _ : -")
    return value


def database_address(value: object) -> object:
    """The URL of an SQLite file or a PostgreSQL database; a path without a scheme names an SQLite file."""
    if not isinstance(value, str) or not value:
        raise ValueError("is not a path or URL; use sqlite:///path or postgresql://…")
    if "://" not in value:
        return f"sqlite:///{value}"
    scheme = urlsplit(value).scheme
    if scheme not in ("sqlite", "postgresql", "postgres"):
        raise ValueError(f"has the scheme {scheme}://, which is not supported; use sqlite:///path or postgresql://…")
    if scheme == "sqlite" and value != "sqlite://" and (not value.startswith("sqlite:///") or value == "sqlite:///"):
        raise ValueError("has no path; write sqlite:///relative/agent.db or sqlite:////absolute/agent.db")
    return well_formed(value)


def well_formed(url: str) -> str:
    """The URL of a database. Raises ValueError if its host would end within its password, or if parameters would become part
    of a file's name."""
    if url.startswith("sqlite:") and "?" in url:
        raise ValueError("has parameters, which SQLite's URLs don't take; leave out the ? and what follows")
    if _MISREAD_PASSWORD.match(url):
        raise ValueError("has a password with /, ?, # or a space; percent-encode them, as %2F, %3F, %23 and %20")
    return url


PORT_MAX = 65_535


def port_number(value: object) -> int:
    """A port; 0 stands for any free one."""
    return count(value, least=0, most=PORT_MAX)


def text(value: object) -> str:
    """A text that is not empty."""
    if not isinstance(value, str):
        raise ValueError("is not a text")
    if not value:
        raise ValueError("is empty")
    return value


def path(value: object) -> Path:
    """A path."""
    if not isinstance(value, str | Path):
        raise ValueError("is not a path")
    if not str(value).strip():
        raise ValueError("is empty, which would be the working directory; write a path, or `.` for that")
    return Path(value)


def bytes_text(amount: int) -> str:
    """A number of bytes as people write it: `64MiB`, `128KiB`, or the bare number."""
    unit = next((unit for unit in ("GiB", "MiB", "KiB") if amount and not amount % _BYTES_UNIT[unit.lower()]), None)
    return f"{amount // _BYTES_UNIT[unit.lower()]}{unit}" if unit else str(amount)


#: The part before a URL's host: up to the last @ before the query, because a password may contain one. A file has no host.
_CREDENTIALS = re.compile(r"([\w+]+)://(?!/)([^?#\s]*|[^:@/=\s]{0,100}:(?:[^@?]{0,200}|[^@=]{0,200}))@")
#: A URL whose host would end within its password.
_MISREAD_PASSWORD = re.compile(r"[\w+]+://[^@:/?#]*:[^@/?#\s]*(?:[/#\s][^@?]*|\?[^@=]*)@")
#: Databases have users with names; elsewhere a single word before the host is a token.
_WITH_USERS = frozenset({"postgresql", "postgres", "mysql", "mariadb", "mongodb", "mongodb+srv"})
_ADDRESS_BEGINS = re.compile(r"(?<=,)\s*(?=[\w+]+://)")
_PARAMETER = re.compile(r"([?&])([^?=&\s]+)=([^&\s,]*)")


def redacted(text: str) -> str:
    """The text with the secrets of its URLs replaced by three dots: passwords and tokens before the host, and secret
    parameters. Several URLs are separated by commas."""
    return "".join(map(_redacted_address, _ADDRESS_BEGINS.split(text)))


def _redacted_address(text: str) -> str:
    text = _CREDENTIALS.sub(_redacted_credentials, text)
    return _PARAMETER.sub(lambda found: f"{found[1]}{found[2]}={'…' if is_secret_name(found[2]) else found[3]}", text)


def _redacted_credentials(found: re.Match[str]) -> str:
    user, colon, _ = found[2].partition(":")
    if colon:
        return f"{found[1]}://{user}:…@"
    return f"{found[0]}" if found[1].lower() in _WITH_USERS else f"{found[1]}://…@"


def networks(entries: tuple[str, ...]) -> tuple[str, ...]:
    """Addresses and networks."""
    for entry in entries:
        try:
            ipaddress.ip_network(entry)
        except ValueError:
            raise ValueError(f"{entry!r} is not an address or network; write it as 127.0.0.1 or 10.0.0.0/24") from None
    return entries


SECRET_CHARS_MIN = 16


def secret(value: object) -> str:
    """A shared secret, long enough not to be guessed."""
    if not isinstance(value, str) or len(value) < SECRET_CHARS_MIN:
        raise ValueError(f"must have at least {SECRET_CHARS_MIN} characters")
    if not _is_text(value):
        raise ValueError("is not UTF-8 text")
    return value


#: Stands for the random secret that the store keeps.
STORED_SECRET = "stored"


def former_secret(value: object) -> str:
    """A shared secret that was in use, or the word for the one that the store keeps."""
    return STORED_SECRET if value == STORED_SECRET else secret(value)


def _is_text(value: str) -> bool:
    """Whether the value can be encoded. Bytes of the environment that are not UTF-8 arrive as lone surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


NODE_NAME_CHARS_MAX = 255


def name_of_node(value: object) -> str | None:
    """A node's name of printable characters, short enough for every store; None for an empty one."""
    if not isinstance(value, str) or len(value) > NODE_NAME_CHARS_MAX:
        raise ValueError(f"is not a name of at most {NODE_NAME_CHARS_MAX} characters")
    if not value.isprintable():
        raise ValueError("has unprintable characters")
    return value or None


_DNS_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*\Z", re.ASCII)
_DNS_NAME_CHARS_MAX = 253


def dns_name(value: object) -> str:
    """A host name in lower case, without a wildcard."""
    text = value.strip().lower() if isinstance(value, str) else ""
    if len(text) > _DNS_NAME_CHARS_MAX or not _DNS_NAME.match(text):
        raise ValueError("is not a DNS name; write it as tocsin-node or node.tocsin.example")
    return text


_PEER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(:(\d{1,5}))?\Z", re.ASCII)


#: A URL's characters that a member row can have besides its other words.
_API_URL = re.compile(r"https?://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::\d{1,5})?(?:/[A-Za-z0-9._~/-]*)?\Z", re.ASCII)
API_URL_CHARS_MAX = 200


def peer_address(value: object) -> str:
    """`host` or `host:port`; an IPv6 address is in brackets."""
    match = _PEER.match(value) if isinstance(value, str) else None
    if match is None or (match[3] and not 0 < int(match[3]) < 65_536) or not _is_host(match[1]):
        raise ValueError("is not an address; write it as 10.0.0.5, timers-1.internal:9070 or [fd00::5]:9070")
    if match[1] in ("0.0.0.0", "[::]"):
        raise ValueError("stands for every address of a machine; write the one at which other nodes reach this one")
    return match[0]


def share(value: object) -> float:
    """A number from 0 to 1, also as text."""
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else -1.0
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ValueError("is not a share; write a number from 0 to 1, such as 0.01")
    return number


def api_url(value: object) -> str:
    """`http://host:port` or `https://…`, with a path if a proxy serves the API below one; without a slash at the end."""
    text = value.strip().rstrip("/") if isinstance(value, str) else ""
    match = _API_URL.match(text)
    if match is None or len(text) > API_URL_CHARS_MAX:
        raise ValueError(
            f"is not the URL of an API; write it as http://10.0.0.5:8080, in at most {API_URL_CHARS_MAX} characters, without "
            "user, query and fragment"
        )
    if match[1] in ("0.0.0.0", "[::]"):
        raise ValueError("stands for every address of a machine; write the one at which clients reach this node")
    return text


def _is_host(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        # A host name, which has no brackets.
        return not host.startswith("[")
    return True

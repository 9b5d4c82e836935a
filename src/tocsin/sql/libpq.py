"""URLs of PostgreSQL with libpq's parameters, which the drivers of the timers' store and of the agent's database share."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from tocsin.model.errors import ConfigError

#: Parameters that name a file.
_FILES = frozenset({"sslrootcert", "sslcert", "sslkey", "sslcrl"})


def refuse_missing_files(setting: str, url: str) -> None:
    """Raises ConfigError if a parameter of the setting's URL names a file that does not exist: the driver's error would not
    differ from that of a server that is not there yet."""
    for name, value in parse_qsl(urlsplit(url).query):
        if name in _FILES and not Path(value).expanduser().is_file():
            raise ConfigError(f"{setting}: {name}: there is no file {value}; name one that this user can read")

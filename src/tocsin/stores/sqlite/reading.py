"""A look into a timers' database beside the server that uses it, or without one: read-only, and without any lock."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import apsw
import msgspec

from tocsin.administration import API_KEYS
from tocsin.model.access import ApiKey
from tocsin.model.errors import StoreUnavailable
from tocsin.stores.sqlite.connection import translate_error

#: How long to wait for a transaction that recovers the log.
_BUSY_TIMEOUT_MS = 5_000
_KEYS = f"SELECT record_value FROM records WHERE record_kind = '{API_KEYS}' AND record_key <> ''"


class Glance(NamedTuple):
    """What a database records about itself. `key_expiries` in microseconds, None: never."""

    application: int
    schema: int
    format: int | None
    readable_from: int | None
    key_expiries: list[int | None]


def glance(path: Path, *, alone: bool) -> Glance:
    """Reads the file. `alone`: no server uses it; a file that was closed in order is then read without creating the files
    that connections share. Raises StoreError."""
    closed = alone and not path.with_name(path.name + "-wal").exists()
    uri = f"file:{quote(str(path.absolute()))}?mode=ro{'&immutable=1' if closed else ''}"
    try:
        connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
            schema = connection.pragma("user_version")
            application = connection.pragma("application_id")
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
            meta = dict(connection.execute("SELECT meta_name, meta_value FROM meta")) if "meta" in tables else {}
            records = connection.execute(_KEYS) if "records" in tables else ()
            expiries = [msgspec.json.decode(record, type=ApiKey).expires_at for (record,) in records]
            return Glance(application, schema, meta.get("format"), meta.get("readable_from"), expiries)
        finally:
            connection.close()
    except (apsw.Error, msgspec.DecodeError) as error:
        translated = translate_error(error, path)
        raise (translated if translated is not error else StoreUnavailable(f"{path}: {error}")) from error

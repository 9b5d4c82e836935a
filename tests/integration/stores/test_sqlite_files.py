"""Files of SQLite stores: those of an earlier release, and their permissions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from tocsin.model.access import ApiKey, Role
from tocsin.model.timer import Status
from tocsin.ports.store import SignIn
from tocsin.stores.sqlite import connection as sqlite_connection
from tocsin.stores.sqlite.store import SqliteStore
from tocsin.testing.store_conformance_base import claimed, finished, row


async def test_expired_timers_can_be_stored_in_a_file_of_an_earlier_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sqlite_connection.migrations()[:4]
    path = tmp_path / "tocsin.db"
    kept, late = finished(row(1), Status.FAILED), finished(row(2), Status.EXPIRED)
    with monkeypatch.context() as earlier:
        earlier.setattr(sqlite_connection, "migrations", lambda: before)
        store = SqliteStore(path)
        await store.open(4)
        await store.apply([replace(await claimed(store), history=[kept])])
        await store.close()
    store = SqliteStore(path)
    await store.open(None)
    try:
        await store.apply([replace(await claimed(store, 1), history=[late])])
        assert (await store.fetch(0, [kept.uuid]))[kept.uuid].finished == kept
        assert (await store.fetch(1, [late.uuid]))[late.uuid].finished == late
    finally:
        await store.close()
    connection = apsw.Connection(str(path))
    with pytest.raises(apsw.ConstraintError):
        connection.execute("UPDATE history SET timer_status = 'lost'")
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    connection.close()


async def test_file_of_the_schema_with_sign_outs_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sqlite_connection.migrations()[:3]
    path = tmp_path / "tocsin.db"
    with monkeypatch.context() as earlier:
        earlier.setattr(sqlite_connection, "migrations", lambda: before)
        store = SqliteStore(path)
        await store.open(4)
        await store.close()
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO sign_outs VALUES ('a', 5)")
    connection.execute("INSERT INTO api_keys VALUES ('k', ?)", ('{"key_id":"k","hash":"0","role":"read"}',))
    connection.close()
    store = SqliteStore(path)
    await store.open(None)
    try:
        assert await store.api_keys() == [ApiKey("k", "0", Role.READ)]
        await store.put_sign_in(SignIn("h", "k", 1, 2), 1, 1)
        assert await store.sign_ins(["h"]) == [SignIn("h", "k", 1, 2)]
    finally:
        await store.close()
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'sign_outs'").get == 0
    connection.close()

"""MysqlStore's values, packets, session settings, rights, TLS and schemas."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
import trustme

from tests.support.mysql import MysqlServer, opened, session
from tests.support.pools import writing_pool
from tocsin.model.errors import ConfigError, DefiniteFailure, SchemaTooNew, StoreCorrupted, StoreUnavailable
from tocsin.model.timer import Status
from tocsin.ports.store import KEY_MAX, KEY_MIN, Applied, ListQuery
from tocsin.sql.pool import Activity
from tocsin.stores.mysql import schema as mysql_schema
from tocsin.stores.mysql.store import MysqlStore
from tocsin.stores.options import MysqlOptions
from tocsin.testing.store_conformance_base import claimed, finished, loaded, put, row, suspended, uuid_of


@pytest_asyncio.fixture
async def store(mysql_url: str) -> AsyncIterator[MysqlStore]:
    store = MysqlStore(mysql_url)
    await store.open(4)
    yield store
    await store.close()


# -- values


async def test_batches_larger_than_a_packet_are_whole(mysql: MysqlServer) -> None:
    url = mysql.new_url()
    async with session(url, database=False) as other:
        await other.run(b"SET GLOBAL max_allowed_packet = 1048576")
    async with opened(url, mysql=MysqlOptions(statement_bytes_max=1 << 30)) as store:
        batch = await claimed(store)
        rows = [row(i, i, record=bytes([i]) * 300_000) for i in range(1, 12)]
        assert await store.apply([replace(batch, upserts=rows, history=[finished(rows[0])])]) == [Applied.DURABLE]
        assert await loaded(store) == rows
        with pytest.raises(DefiniteFailure, match="max_allowed_packet") as refused:
            await store.apply([replace(batch, upserts=[row(50), row(51, record=b"x" * 1_100_000)])])
        assert not isinstance(refused.value, StoreUnavailable)
        assert await loaded(store) == rows


async def test_values_that_do_not_fit_a_column_are_definite_failures(store: MysqlStore) -> None:
    batch = await claimed(store)
    for bad in (
        row(1, timer_id="\ud800"),
        row(1, timer_id="\udc80"),
        row(1, timer_id="a" * 70_000),
        row(1, uuid=b"short"),
        row(1, uuid=b"longer than sixteen"),
        row(1, tags=("a\x1fb",)),
        row(1)._replace(generation=b"x"),
        row(1)._replace(execute_at=2**63),
    ):
        with pytest.raises(DefiniteFailure) as refused:
            await store.apply([replace(batch, upserts=[row(2), bad])])
        assert not isinstance(refused.value, StoreUnavailable)
    assert await loaded(store) == []


async def test_values_that_look_like_sql_are_stored_as_text(store: MysqlStore) -> None:
    await claimed(store)
    every = "\\'\"`;-- \x00\n\r\x1a%s%%/*'*/ü🚨\\"
    rows = [
        row(i + 1, i, namespace=text, timer_id=text, tags=(text.replace("\x1f", ""),), record=text.encode())
        for i, text in enumerate([every, "'", "\\", "\\'", "''", "'; DROP TABLE timers; -- ", "a\\"])
    ]
    aside = row(99, 99, suspended=every, record=bytes(range(256)) * 4)
    await put(store, *rows, aside)
    assert await loaded(store) == rows
    assert await suspended(store) == [aside]
    for each in rows:
        query = ListQuery((each.namespace,), (0,), frozenset({Status.PENDING}), tags=each.tags, id_prefix=each.timer_id)
        assert (await store.list(query)).rows == [each]


async def test_texts_that_differ_in_spaces_or_case_differ(store: MysqlStore) -> None:
    await claimed(store)
    rows = [row(i + 1, i, namespace=name, timer_id=name) for i, name in enumerate(["a", "a ", "A", "á"])]
    await put(store, *rows)
    for each in rows:
        query = ListQuery((each.namespace,), (0,), frozenset({Status.PENDING}), id_prefix=each.timer_id)
        assert (await store.list(query)).rows == [each]


async def test_timer_with_a_zero_uuid_is_not_a_shard_row(store: MysqlStore) -> None:
    batch = await claimed(store)
    await put(store, zeros := row(1, 0, uuid=bytes(16)))
    assert await loaded(store) == [zeros]
    assert await store.apply([replace(batch, deletes=[bytes(16)], delete_to=KEY_MAX)]) == [Applied.DURABLE]
    assert [state.epoch for state in await store.shards()] == [1]
    assert await store.load(0, KEY_MIN, KEY_MAX, 5) == ([], KEY_MAX)


async def test_session_settings_do_not_depend_on_the_servers(mysql: MysqlServer) -> None:
    async with session(mysql.new_url(), database=False) as other:
        await other.run(
            b"SET GLOBAL sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'", b"SET GLOBAL autocommit = 0",
            b"SET GLOBAL time_zone = '+05:00'", b"SET GLOBAL character_set_server = latin1",
            b"SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        )  # fmt: skip
    async with opened(mysql.new_url()) as store:
        await claimed(store)
        await put(store, every := row(1, 1, timer_id="back\\slash'", namespace="Grüße 🚨"))
        assert await loaded(store) == [every]
        with pytest.raises(DefiniteFailure):
            await put(store, row(2, timer_id="a" * 70_000))
        async with session(mysql.new_url(), database=False) as other:
            at = await other.rows(b"SELECT CAST(UNIX_TIMESTAMP() AS SIGNED)")
        assert abs(await store.now() // 1_000_000 - at[0][0]) < 3_600


# -- sessions


async def test_node_needs_no_ddl_rights(shared_mysql: MysqlServer, mysql_url: str) -> None:
    name = MysqlStore(mysql_url)._server.database
    async with opened(mysql_url), session(mysql_url) as other:
        await other.run(
            f"CREATE USER {name[:20]}@localhost IDENTIFIED BY 'p/w ü'".encode(),
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {name}.* TO {name[:20]}@localhost".encode(),
        )
    url = f"mysql://{name[:20]}:p%2Fw%20%C3%BC@127.0.0.1:{shared_mysql.port}/{name}?socket={shared_mysql.folder}/socket"
    async with opened(url) as store:
        batch = await claimed(store)
        assert await store.apply([replace(batch, upserts=[row(1)], deletes=[uuid_of(2)])]) == [Applied.DURABLE]


async def test_migration_needs_the_documented_rights_and_repeats_views(
    shared_mysql: MysqlServer, mysql_url: str
) -> None:
    name = MysqlStore(mysql_url)._server.database
    user = f"{name[:20]}@localhost".encode()
    url = f"mysql://{name[:20]}@127.0.0.1:{shared_mysql.port}/{name}?socket={shared_mysql.folder}/socket"
    async with session(mysql_url, database=False) as other:
        await other.run(
            f"CREATE DATABASE {name}".encode(),
            b"CREATE USER " + user,
            b"GRANT CREATE, ALTER, INDEX, SELECT, INSERT, UPDATE, DELETE ON %b.* TO %b" % (name.encode(), user),
        )
        with pytest.raises(ConfigError, match=r"grant .* CREATE VIEW"):
            await MysqlStore(url).open(4)
        await other.run(b"GRANT CREATE VIEW ON %b.* TO %b" % (name.encode(), user))
        async with opened(url):
            pass
        # As a migration that was interrupted after its views leaves it.
        await other.run(f"UPDATE {name}.meta SET meta_value = 0 WHERE meta_name = 'schema_version'".encode())
        async with opened(url) as store:
            assert await claimed(store)


async def test_tls_with_a_verified_server(tmp_path: Path) -> None:
    ca, other_ca = trustme.CA(), trustme.CA()
    issued = ca.issue_cert("localhost")
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    other_ca.cert_pem.write_to_path(str(tmp_path / "other_ca.pem"))
    files = {"ssl_key": "key.pem", "ssl_cert": "cert.pem", "ssl_ca": "ca.pem"}
    server = MysqlServer(settings={name: str(tmp_path / file) for name, file in files.items()})
    try:
        server.init()
        server.start()
        for host, parameters in (("127.0.0.1", "?ssl-mode=REQUIRED"), ("localhost", f"?ssl-ca={tmp_path}/ca.pem")):
            async with opened(server.url("t", parameters).replace("127.0.0.1", host)) as store:
                cipher = await writing_pool(store).run(
                    Activity.READING, lambda connection: connection.rows(b"SHOW SESSION STATUS LIKE 'Ssl_cipher'")
                )
                assert cipher[0][1]
        # A host name other than the certificate's, and another authority.
        for parameters in (f"?ssl-ca={tmp_path}/ca.pem", f"?ssl-ca={tmp_path}/other_ca.pem"):
            with pytest.raises(StoreUnavailable, match="certificate"):
                await MysqlStore(server.url("t", parameters)).open(4)
    finally:
        server.remove()


# -- schemas


async def test_nodes_that_start_concurrently_create_one_schema(mysql_url: str) -> None:
    stores = [MysqlStore(mysql_url) for _ in range(5)]
    assert set(await asyncio.gather(*(store.open(6) for store in stores))) == {6}
    await claimed(stores[0])
    assert [state.epoch for state in await stores[4].shards()] == [1]
    for store in stores:
        await store.close()


async def test_database_of_another_application_is_refused_unchanged(mysql_url: str) -> None:
    name = MysqlStore(mysql_url)._server.database.encode()
    async with session(mysql_url, database=False) as other:
        await other.run(b"CREATE DATABASE %b" % name, b"CREATE TABLE %b.timers (theirs integer)" % name)
        with pytest.raises(StoreCorrupted, match="another application"):
            await MysqlStore(mysql_url).open(None)
        tables = await other.rows(b"SELECT table_name FROM information_schema.tables WHERE table_schema = '%b'" % name)
        assert tables == (("timers",),)


async def test_missing_database_is_not_created_without_create(mysql_url: str) -> None:
    name = MysqlStore(mysql_url)._server.database.encode()
    with pytest.raises(StoreUnavailable, match="tocsin migrate"):
        await MysqlStore(mysql_url, create=False).open(None)
    async with session(mysql_url, database=False) as other:
        assert not await other.rows(b"SHOW DATABASES LIKE '%b'" % name)
        await other.run(b"CREATE DATABASE %b" % name)
        with pytest.raises(StoreUnavailable, match="tocsin migrate"):
            await MysqlStore(mysql_url, create=False).open(None)


async def test_a_newer_schema_is_used_if_it_is_readable_and_else_refused(mysql_url: str, store: MysqlStore) -> None:
    async with session(mysql_url) as other:
        await other.run(b"UPDATE meta SET meta_value = 999 WHERE meta_name = 'schema_version'")
        earlier = MysqlStore(mysql_url)
        await earlier.open(None)
        await claimed(earlier)
        await earlier.close()
        await other.run(b"UPDATE meta SET meta_value = 998 WHERE meta_name = 'readable_from'")
        with pytest.raises(SchemaTooNew, match="999"):
            await MysqlStore(mysql_url).open(None)
        await other.run(b"DELETE FROM meta WHERE meta_name = 'format'")
    with pytest.raises(StoreCorrupted, match="before its first release"):
        await MysqlStore(mysql_url).open(None)


async def test_interrupted_migration_is_repeated(
    mysql_url: str, store: MysqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await claimed(store)
    await put(store, kept := row(1))
    known = mysql_schema.migrations()
    number = known[-1][0] + 1
    half = "CREATE TABLE IF NOT EXISTS half (a integer); "
    broken = [*known, (number, half + "CREATE TABLE timers (again integer)")]
    monkeypatch.setattr(mysql_schema, "migrations", lambda: broken)
    with pytest.raises(DefiniteFailure, match="timers"):
        await MysqlStore(mysql_url).open(None)
    newer = [*known, (number, half + "ALTER TABLE members ADD COLUMN member_note text")]
    monkeypatch.setattr(mysql_schema, "migrations", lambda: newer)
    async with opened(mysql_url) as again:
        assert await loaded(again) == [kept]
    async with session(mysql_url) as other:
        sql = b"SELECT meta_value FROM meta WHERE meta_name = 'schema_version'"
        assert await other.rows(sql) == ((number,),)


async def test_a_dropped_table_is_corruption(mysql_url: str, store: MysqlStore) -> None:
    batch = await claimed(store)
    async with session(mysql_url) as other:
        await other.run(b"DROP TABLE timers")
    with pytest.raises(StoreCorrupted, match="backup"):
        await store.apply([batch])

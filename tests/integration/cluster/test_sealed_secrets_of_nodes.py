"""Encrypted secrets where nodes share a store: what the database has of them, and nodes that lack the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import asyncpg

from tests.integration.server.test_sealed_secrets import Plants, Recorder, plant, refused
from tests.support.calls import Api
from tests.support.cluster import node, running
from tests.support.command import command
from tests.support.http import Client

KEY = {"TOCSIN_SECRETS_KEY": "33" * 32}


async def dump(url: str) -> list[bytes]:
    """All rows of all tables, as text."""
    session = await asyncpg.connect(url)
    try:
        tables = await session.fetch("SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT LIKE 'pg_%'")
        found = []
        for schema, table in tables:
            if schema != "information_schema":
                rows: list[Any] = await session.fetch(f'SELECT * FROM "{schema}"."{table}"')
                found += [b"\0".join(_bytes(value) for value in row) for row in rows]
        return found
    finally:
        await session.close()


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


async def test_nodes_share_a_key_and_their_database_has_no_secret_in_clear(tmp_path: Path, postgresql_url: str) -> None:
    plants = Plants()
    one, two = (node(tmp_path, name, postgresql_url, steady=True) for name in ("one", "two"))
    for each in (one, two):
        each.env |= KEY
        # With the service agent, whose tables are in the same database.
        each.flags = tuple(flag for flag in each.flags if flag != "--no-agent")
    async with running(one, two), Recorder() as ok, Recorder(status=500) as bad:
        # Through one node and the other, whoever owns the shards.
        await plant(Api(one), Client(two.address), plants, ok.url, bad.url)
        arrived = await ok.count(7)
        stored = await dump(postgresql_url)
        assert any(b"tsl1." in row for row in stored)
        assert plants.found_in(stored) == []
        assert len(plants.found_in(repr(each).encode() for each in arrived)) >= 30
        for env in ({}, {"TOCSIN_SECRETS_KEY": "44" * 32}):
            other = node(tmp_path, "three", postgresql_url)
            other.env |= env
            assert "SECRETS_KEY_MISSING" in await refused(other)
    flags = ("--from", postgresql_url, "--to", f"sqlite:///{tmp_path}/to/tocsin.db")
    code, out, err = await command("transfer", *flags, "--dry-run")
    assert (code != 0, "SECRETS_KEY_MISSING" in out + err) == (True, True), out + err

"""The checks of `tocsin doctor` on this machine: settings, disk, ports, store, keys, neighbours, and what inbox and agent
need.

All of them are safe while a server runs. A SQLite file is opened read-only and without its lock, and a schema is neither
created nor migrated.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from tocsin.administration import api_keys
from tocsin.cluster.handshake import ClusterSecrets
from tocsin.model.errors import ConfigError, SchemaNotMigrated, TocsinError
from tocsin.model.instants import format_instant
from tocsin.ports.bus import BrokerRefused, BusUnavailable
from tocsin.ports.inbox import PROBE
from tocsin.ports.seals import NoSeals
from tocsin.ports.store import FORMAT, KEY_MAX, KEY_MIN, Member, ShardBatch, Store
from tocsin.server.access import fault_without_keys, read_admin_key
from tocsin.server.inbox import inbox_table
from tocsin.server.neighbours import alive_members, fault_of
from tocsin.server.peers import secrets_of
from tocsin.server.seals import open_seals
from tocsin.server.sockets import bind, url_of
from tocsin.server.stores import newest_schema, open_store
from tocsin.server.transfer_mark import TRANSFER, TRANSFER_KEY, under_way
from tocsin.settings import Origin, Settings, sources, unknown_variables
from tocsin.sql.file_lock import lock_holder
from tocsin.stores.sqlite.connection import APPLICATION_ID
from tocsin.stores.sqlite.files import Glance, glance
from tocsin.stores.sqlite.store import LOCK_FILE

#: Less free disk space is a warning: what the logs of the two databases may take.
FREE_BYTES_LOW = 512 * 2**20
#: With less, SQLite can't even open a database.
FREE_BYTES_MIN = 2**20
#: A slower round trip to the store delays every commit noticeably.
ROUND_TRIP_S_HIGH = 0.1
#: How long a store may take to answer at all.
_STORE_TIMEOUT_S = 30.0


class Verdict(StrEnum):
    """What a check found. Only `fail` makes the command fail."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(NamedTuple):
    """One line: what was checked, what was found, and what to do about it."""

    check: str
    verdict: Verdict
    text: str
    mend: str = ""


def check_settings(flags: dict[str, object]) -> Iterator[Finding]:
    """The settings are valid, or they could not be loaded; which are set, and which variables are none."""
    origins = [source.origin for source in sources(flags).values() if source.origin is not Origin.DEFAULT]
    counted = ", ".join(f"{origins.count(origin)} from {origin.value}" for origin in Origin if origin in origins)
    yield Finding("settings", Verdict.OK, f"valid; {counted or 'all at their defaults'}")
    for line in unknown_variables():
        yield Finding("settings", Verdict.WARN, line, "correct its name, or unset it")


def check_disk(settings: Settings) -> Iterator[Finding]:
    """The data folder and the folder for temporary files can be written and have space."""
    for name, folder in (("data folder", settings.data_dir), ("temporary folder", Path(tempfile.gettempdir()))):
        yield _folder(name, folder)


def _folder(name: str, folder: Path) -> Finding:
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return Finding("disk", Verdict.FAIL, f"{name} {existing} can't be written", "give it to the server's user")
    free = shutil.disk_usage(existing).free
    text = f"{name} {folder}: {free / 2**20:,.0f} MiB free"
    if free < FREE_BYTES_LOW:
        verdict = Verdict.FAIL if free < FREE_BYTES_MIN else Verdict.WARN
        return Finding("disk", verdict, text, "free space, or use another disk")
    if existing != folder.absolute():
        return Finding("disk", Verdict.OK, f"{text}; `tocsin serve` creates it")
    return Finding("disk", Verdict.OK, text)


def check_ports(settings: Settings, ours: str | None) -> Iterator[Finding]:
    """The ports can be bound, or a Tocsin has them: `ours` is the URL of one that answers at `port`."""
    url = url_of(settings.host, settings.port)
    if ours is not None:
        yield Finding("port", Verdict.OK, f"a Tocsin serves at {ours}")
    else:
        yield _port(settings.host, settings.port, "port", url)
    if settings.cluster_port and ours is None and not settings.store_url().startswith(("sqlite", "memory")):
        yield _port(settings.host, settings.cluster_port, "cluster.port", f"{settings.host}:{settings.cluster_port}")


def _port(host: str, port: int, setting: str, shown: str) -> Finding:
    try:
        bind(host, port, setting).close()
    except ConfigError as error:
        return Finding("port", Verdict.FAIL, str(error), f"end what has it, or set another {setting}")
    return Finding("port", Verdict.OK, f"{shown} is free")


async def check_store(settings: Settings) -> AsyncIterator[Finding]:
    """The store is there, can be read and written, and its schema and clock are right; its keys and the other nodes."""
    scheme = settings.store_url().partition(":")[0]
    if scheme == "memory":
        yield Finding("store", Verdict.WARN, "memory:// loses everything with the process", "set store to a database")
        yield check_keys(settings, [])
    elif scheme == "sqlite":
        for finding in _check_sqlite(settings):
            yield finding
    else:
        async for finding in _check_shared(settings):
            yield finding


def _check_sqlite(settings: Settings) -> Iterator[Finding]:
    path = settings.sqlite_path()
    if not path.exists():
        yield Finding("store", Verdict.OK, f"there is none yet at {path}; `tocsin serve` creates it")
        yield check_keys(settings, [])
        return
    holder = lock_holder(path.parent / LOCK_FILE)
    used = "no server uses it" if holder is None else f"in use by the server with process id {holder}"
    began = time.monotonic()
    try:
        found = glance(path, alone=holder is None)
    except TocsinError as error:
        yield Finding("store", Verdict.FAIL, str(error), "check the file's owner and rights, or restore a backup")
        return
    took_ms = (time.monotonic() - began) * 1_000
    yield _schema(settings, path, found, f"{path}: read in {took_ms:.1f} ms; {used}")
    if not all(os.access(each, os.W_OK) for each in (path, path.parent)):
        yield Finding("store", Verdict.FAIL, f"{path} can't be written", "give file and folder to the server's user")
    yield from check_transfer(found.transfer)
    yield check_keys(settings, found.key_expiries)
    yield Finding("clock", Verdict.OK, "the store's is this machine's")


def _schema(settings: Settings, path: Path, found: Glance, text: str) -> Finding:
    newest = newest_schema(settings)
    if found.application != APPLICATION_ID:
        return Finding("store", Verdict.FAIL, f"{path} is a database of another application", "use another file")
    if found.schema and found.format != FORMAT:
        mend = "use an empty database, or the version that made it"
        return Finding("store", Verdict.FAIL, f"{path} is of a version before the first release", mend)
    if found.schema > newest and (found.readable_from or found.schema) > newest:
        mend = "run the newer Tocsin, or restore a backup"
        return Finding("store", Verdict.FAIL, f"{path} has schema {found.schema}, this Tocsin knows {newest}", mend)
    if found.schema < newest:
        mend = "the next start of the server migrates it; back it up before"
        return Finding("store", Verdict.WARN, f"{text}; schema {found.schema}, this Tocsin has {newest}", mend)
    return Finding("store", Verdict.OK, f"{text}; schema {found.schema}")


async def _check_shared(settings: Settings) -> AsyncIterator[Finding]:
    place = settings.store_url_redacted()
    try:
        store = open_store(settings, node=False, memory=False, create=False)
        async with asyncio.timeout(_STORE_TIMEOUT_S):
            shards = await store.open(None)
    except SchemaNotMigrated as error:
        yield Finding(
            "store", Verdict.WARN, str(error), "run `tocsin migrate`, or start the server, which does the same"
        )
        return
    except (TocsinError, OSError, TimeoutError) as error:
        text = str(error) or f"{place} did not answer within {_STORE_TIMEOUT_S:.0f} s"
        yield Finding("store", Verdict.FAIL, text, "check store, its address, user and password, and the server's log")
        return
    try:
        async with asyncio.timeout(_STORE_TIMEOUT_S):
            found = await _questions(settings, store, f"{place}: {shards} shards, schema {newest_schema(settings)}")
        for finding in found:
            yield finding
    except (TocsinError, OSError, TimeoutError) as error:
        mend = "check the rights of the store's user, and the server's log"
        yield Finding("store", Verdict.FAIL, str(error) or f"{place} stopped answering", mend)
    finally:
        await store.close()


async def _questions(settings: Settings, store: Store, text: str) -> list[Finding]:
    await _use_rights(store)
    began_s, began_us = time.monotonic(), time.time_ns() // 1_000
    store_us = await store.now()
    trip_s = time.monotonic() - began_s
    offset_s = (began_us - store_us) / 1e6 + trip_s / 2
    text += f"; can be written; round trip {trip_s * 1_000:.1f} ms"
    slow = trip_s > ROUND_TRIP_S_HIGH
    findings = [
        Finding("store", Verdict.WARN, text, "run nodes near their database: each commit waits for several")
        if slow
        else Finding("store", Verdict.OK, text)
    ]
    # The clock of a store may have whole seconds only (docs/reference/stores.md).
    limit_s = settings.engine.clock_skew_max_us / 1e6 + trip_s
    off = abs(offset_s) > limit_s + (1.0 if store_us % 1_000_000 == 0 else 0.0)
    findings.append(
        Finding("clock", Verdict.FAIL, f"{offset_s:+.3f} s from the store's", "synchronize it with NTP")
        if off
        else Finding("clock", Verdict.OK, f"{offset_s:+.3f} s from the store's")
    )
    mark = await store.record(TRANSFER, TRANSFER_KEY)
    findings += check_transfer(None if mark is None else mark.value)
    findings.append(check_keys(settings, [key.expires_at for key in await api_keys(store)]))
    findings += await _check_neighbours(settings, store)
    findings.append(await _check_secrets(settings, store))
    return findings


def check_transfer(value: str | None) -> list[Finding]:
    """Nobody has forgotten a transfer under traffic, whose record has this value."""
    if (mark := under_way(value)) is None:
        return []
    text = (
        f"a transfer to {mark.other} has been under way since {format_instant(mark.at)}; until it ends, the servers remove "
        "no history, failures or runs"
    )
    mend = "go on with it by the same command, or end it with `tocsin transfer --cancel`"
    return [Finding("transfer", Verdict.WARN, text, mend)]


async def _check_secrets(settings: Settings, store: Store) -> Finding:
    """Secrets are encrypted, and the keys are those that the store needs."""
    try:
        seals = await open_seals(settings, store, 0, create=False)
    except ConfigError as error:
        return Finding("secrets", Verdict.FAIL, str(error), "add the key to secrets.key_file")
    if isinstance(seals, NoSeals):
        mend = "set secrets.key_file on every node"
        return Finding("secrets", Verdict.WARN, "stored unencrypted, because no key is set", mend)
    return Finding("secrets", Verdict.OK, "encrypted before they are stored")


async def _use_rights(store: Store) -> None:
    """Writes that find nothing to change, and reads: they need the rights on the tables, and an available primary. That
    timers can be inserted only a claim would show. Raises StoreError."""
    await store.forget_member(os.urandom(16))
    await store.put_record("doctor", "none", "-", 1)
    await store.delete_records("doctor", ["none"])
    # Nobody has this claim, so the fence refuses the batch.
    await store.apply([ShardBatch(0, 0, os.urandom(16))])
    await store.load(0, KEY_MIN, KEY_MAX, 1)
    await store.purge_history(0, 1)


async def _check_neighbours(settings: Settings, store: Store) -> list[Finding]:
    alive, silent = await alive_members(store, settings.engine.heartbeat_interval_us / 1e6)
    findings = []
    if alive:
        known = await secrets_of(settings, store, create=False)
        findings = [await _neighbour(settings, known, member) for member in alive]
    if silent:
        names = ", ".join(sorted({member.node for member in silent}))
        mend = "start them again; if they are gone on purpose, their rows disappear by themselves"
        findings.append(Finding("neighbours", Verdict.WARN, f"no heartbeat from {names}", mend))
    return findings or [Finding("neighbours", Verdict.OK, "no node uses this store")]


async def _neighbour(settings: Settings, known: ClusterSecrets, member: Member) -> Finding:
    fault = await fault_of(settings, known, member)
    if fault is None:
        return Finding("neighbours", Verdict.OK, f"{member.node}: alive and reachable")
    return Finding(
        "neighbours", Verdict.FAIL if fault.serious else Verdict.WARN, f"{member.node}: {fault.text}", fault.mend
    )


def check_keys(settings: Settings, expiries: list[int | None]) -> Finding:
    """There are keys where they are required, and none expires soon; by their expiries in microseconds, None: never."""
    if not expiries:
        return _check_no_keys(settings)
    now_us = time.time_ns() // 1_000
    notice_us = int(settings.keys_expiry_notice_s * 1e6)
    valid = [expiry for expiry in expiries if expiry is None or expiry > now_us]
    ending = [expiry for expiry in expiries if expiry is not None and expiry <= now_us + notice_us]
    if not valid and fault_without_keys(settings) is not None:
        mend = "tocsin keys create --role admin"
        return Finding("keys", Verdict.FAIL, "none of them is valid any more: no client gets in", mend)
    if ending:
        first = format_instant(min(ending))
        mend = "create new ones, deploy them, then revoke these: tocsin keys list"
        return Finding(
            "keys", Verdict.WARN, f"{len(ending)} of {len(expiries)} expire soon or have, first at {first}", mend
        )
    return Finding("keys", Verdict.OK, f"{len(valid)} valid, none expires soon")


def _check_no_keys(settings: Settings) -> Finding:
    """What a server does that finds no key in its store."""
    if settings.admin_key_file is not None:
        try:
            read_admin_key(settings.admin_key_file)
        except ConfigError as error:
            return Finding("keys", Verdict.FAIL, str(error), "correct the file, or leave the setting out")
        return Finding("keys", Verdict.OK, "none yet; the server creates that of admin_key_file when it starts")
    fault = fault_without_keys(settings)
    if fault is not None:
        mend = "tocsin keys create --role admin, or name a file with the first key in admin_key_file"
        return Finding("keys", Verdict.FAIL, f"{fault}, so it does not start", mend)
    if settings.insecure:
        return Finding("keys", Verdict.OK, "none; with insecure none is required")
    if settings.oidc.issuer is not None:
        return Finding("keys", Verdict.OK, "none; the provider of oidc.issuer identifies clients")
    return Finding("keys", Verdict.OK, "none; from this machine none is required")


async def check_targets(settings: Settings) -> AsyncIterator[Finding]:
    """The NATS server to which timers are published takes messages. Nothing without one."""
    if settings.nats_url is not None:
        yield await _nats(settings, settings.nats_url, "nats_url")


async def check_inbox(settings: Settings) -> AsyncIterator[Finding]:
    """The inbox's database can be reached, and the table read and written. Nothing without an inbox."""
    if settings.inbox.url is None:
        return
    try:
        table = inbox_table(settings)
        try:
            async with asyncio.timeout(_STORE_TIMEOUT_S):
                await table.settle(PROBE)
                found = await table.backlog()
        finally:
            await table.close()
    except (TocsinError, TimeoutError) as error:
        text = str(error) or f"its database did not answer within {_STORE_TIMEOUT_S:.0f} s"
        mend = "check inbox.url, and that its user has the rights SELECT, UPDATE and DELETE on the table"
        yield Finding("inbox", Verdict.FAIL, text, mend)
        return
    text = f"{table.place}: {settings.inbox.table} can be read and written; {found.waiting} rows wait, {found.dead} are dead"
    if found.dead:
        yield Finding("inbox", Verdict.WARN, text, "`tocsin inbox list --dead` shows why")
    else:
        yield Finding("inbox", Verdict.OK, text)


async def check_agent(settings: Settings) -> AsyncIterator[Finding]:
    """The agent's database can be reached and written, and the broker takes its messages. Nothing where it never runs."""
    if not settings.has_agent():
        return
    url = settings.agent_database_url()
    if url.startswith("postgresql"):
        yield await _postgresql(settings, url)
    elif path := url.removeprefix("sqlite:///"):
        yield _file(Path(path))
    if settings.broker is not None:
        yield await _nats(settings, settings.broker, "broker")


def _file(path: Path) -> Finding:
    if not path.exists():
        return Finding("agent", Verdict.OK, f"there is no {path} yet; `tocsin serve` creates it")
    if not all(os.access(each, os.W_OK) for each in (path, path.parent)):
        return Finding("agent", Verdict.FAIL, f"{path} can't be written", "give file and folder to the server's user")
    return Finding("agent", Verdict.OK, f"{path} can be written")


async def _postgresql(settings: Settings, url: str) -> Finding:
    from tocsin.stores.service_calls.postgresql import missing_rights

    mend = "check agent.database, its address, user and password"
    try:
        async with asyncio.timeout(_STORE_TIMEOUT_S):
            place, tables = await missing_rights(url, settings.agent_sql)
    except (TocsinError, OSError, TimeoutError) as error:
        text = str(error) or f"its database did not answer within {_STORE_TIMEOUT_S:.0f} s"
        return Finding("agent", Verdict.FAIL, text, mend)
    if tables is None:
        return Finding("agent", Verdict.OK, f"{place} has no tables yet; `tocsin serve` creates them")
    if tables:
        grant = "grant SELECT, INSERT, UPDATE and DELETE on them to its user"
        return Finding("agent", Verdict.FAIL, f"{place}: rights on {', '.join(tables)} are missing", grant)
    return Finding("agent", Verdict.OK, f"{place} can be read and written")


async def _nats(settings: Settings, url: str, name: str) -> Finding:
    from tocsin.messaging.nats.connection import JetStreamError, NatsConnection, parse_nats_address

    address = parse_nats_address(url, name)
    connection = NatsConnection(address, settings.bus, "tocsin doctor", lambda reason: None)
    try:
        await connection.open()
        try:
            await connection.call("INFO", {})
        finally:
            await connection.close()
    except (BusUnavailable, BrokerRefused, ConfigError, JetStreamError) as error:
        mend = f"check {name}, its user and password, and that JetStream is on"
        return Finding(name, Verdict.FAIL, str(error), mend)
    return Finding(name, Verdict.OK, f"NATS with JetStream at {address}")

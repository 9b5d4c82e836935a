"""The keys of a node's encrypted secrets: where they come from, and whether they are those that the store needs."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import secrets
import shlex
import subprocess
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tocsin.administration import SEAL_KEYS, SealKey, note_seal_key, seal_keys
from tocsin.model.errors import ConfigError
from tocsin.ports.agent_calls import SealedCalls
from tocsin.ports.records import Records
from tocsin.ports.seals import NoSeals, Seals
from tocsin.private_files import make_folder, sync
from tocsin.sealing import KEY_BYTES, BadKeys, KeySeals, key_id, parse_keys
from tocsin.server.engine import Engine
from tocsin.service_calls.api.service_calls import ServiceCalls
from tocsin.settings import Settings
from tocsin.tasks import end_tasks, spawn
from tocsin.timers.resealing import Resealing

#: Larger than any file of keys.
_BYTES_MAX = 64 * 1024
_COMMAND_TIMEOUT_S = 30
_FILE = "secrets.key"
_HEAD = "# Tocsin encrypts secrets in the database beside this file with this key. Keep a copy apart from backups.\n"


def key_beside_database(settings: Settings) -> Path | None:
    """The file with the key of a SQLite store that has no other; None for other stores."""
    scheme = urlsplit(settings.store_url()).scheme
    return settings.sqlite_path().with_name(_FILE) if scheme == "sqlite" else None


async def open_seals(settings: Settings, store: Records, now_us: int, *, create: bool = True) -> Seals:
    """What encrypts secrets on this node. Notes in the store which key does, before it does; with `create`, makes the key of
    a SQLite store that has none.

    Raises ConfigError if the keys can't be read, or the store needs one that this node does not have; StoreError."""
    needed = {key.id for key in await seal_keys(store)}
    keys = await asyncio.to_thread(_keys, settings, create=create and not needed)
    seals = KeySeals(keys) if keys else None
    missing = sorted(needed - set(seals.ids if seals else ()))
    if missing:
        raise ConfigError(_missing(settings, missing))
    if seals is None:
        return NoSeals()
    if create and seals.ids[0] not in needed:
        await note_seal_key(store, SealKey(seals.ids[0], now_us))
    return seals


class KnownKey(NamedTuple):
    """A key that the store needs: it `encrypts`, is a `former` one, or this machine does not have it (`missing`)."""

    key: SealKey
    state: str


class SecretKeys:
    """What `tocsin keys secrets` shows and does."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def listed(self, store: Records) -> list[KnownKey]:
        """The keys that the store needs, the oldest first. Raises ConfigError, StoreError."""
        here = [key_id(key) for key in await asyncio.to_thread(_keys, self._settings, create=False)]
        states = dict.fromkeys(here, "former") | dict.fromkeys(here[:1], "encrypts")
        found = sorted(await seal_keys(store), key=lambda key: (key.since, key.id))
        return [KnownKey(key, states.get(key.id, "missing")) for key in found]

    async def forget(self, store: Records, name: str) -> bool:
        """Lets nodes start without the key; False if it is not known. Raises StoreError."""
        return await store.delete_records(SEAL_KEYS, [name])


async def carry_keys(source: Settings, target: Settings, records: Records, *, copy: bool = True) -> None:
    """Sees to it that servers of a transfer's target have the keys that the source's `records` need: between SQLite stores,
    the file beside the database is copied with them, if `copy`. Raises ConfigError if they would lack one; StoreError."""
    needed = {key.id for key in await seal_keys(records)}
    here, there = key_beside_database(source), key_beside_database(target)
    copied = here is not None and there is not None and here.exists() and not there.exists()
    reads = dataclasses.replace(target, store=source.store, data_dir=source.data_dir) if copied else target
    found = await asyncio.to_thread(_keys, reads, create=False)
    if missing := sorted(needed - {key_id(key) for key in found}):
        raise ConfigError(
            f"SECRETS_KEY_MISSING: secrets in the source are encrypted with key {', '.join(missing)}, which servers of the "
            "target would not have; "
            + (f"set secrets.key_file to a copy of {here}" if here is not None else "add it to secrets.key_file")
            + ", for this command and for those servers"
        )
    if copied and copy and here is not None and there is not None:
        await asyncio.to_thread(_place, there, here.read_text())


def start_resealing(
    ends: AsyncExitStack,
    engine: Engine,
    seals: Seals,
    calls: Callable[[], ServiceCalls | None],
    fatal: Callable[[BaseException], None],
) -> None:
    """Has what waits encrypted again after a rotation, until `ends` ends it. `calls` returns the agent while it runs here."""
    if isinstance(seals, KeySeals):

        def sealed() -> SealedCalls | None:
            found = calls()
            return None if found is None else found.sealed

        work = Resealing(
            engine.context, engine.service, seals.ids[0], engine.total_shards, engine.supervisor.acts_for_all, sealed
        )
        ends.push_async_callback(end_tasks, spawn(work.run(), fatal))


def _missing(settings: Settings, missing: list[str]) -> str:
    beside = key_beside_database(settings)
    where = "add it to secrets.key_file"
    if beside is not None:
        where = f"restore {beside}, or name its copy as secrets.key_file"
    forget = " and ".join(f"tocsin keys secrets --forget {each}" for each in missing)
    return (
        f"SECRETS_KEY_MISSING: secrets in the store are encrypted with {' and '.join(f'key {each}' for each in missing)}, "
        f"which this node does not have; {where}. What is lost for good takes these secrets with it; then run: {forget}"
    )


def _keys(settings: Settings, *, create: bool) -> list[bytes]:
    """The keys in their order: those that are set, then that beside a SQLite database."""
    options, keys = settings.secrets, []
    if options.key is not None:
        keys = _parsed(options.key, "secrets.key")
    elif options.key_file is not None:
        keys = _parsed(_read(options.key_file), f"secrets.key_file: {options.key_file}")
    elif options.key_command is not None:
        keys = _parsed(_output(options.key_command), "secrets.key_command: its output")
    beside = key_beside_database(settings)
    if beside is None:
        return keys
    if not keys and create:
        _make(beside)
    if beside.exists():
        keys += _parsed(_read(beside), str(beside))
    return keys


def _parsed(text: str, source: str) -> list[bytes]:
    try:
        return parse_keys(text)
    except BadKeys as error:
        raise ConfigError(f"{source} {error}") from None


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_BYTES_MAX).decode("utf-8", "replace")
    except OSError as error:
        raise ConfigError(f"secrets.key_file: {path} can't be read: {error.strerror}") from error


def _output(command: str) -> str:
    try:
        done = subprocess.run(
            shlex.split(command), stdin=subprocess.DEVNULL, capture_output=True, timeout=_COMMAND_TIMEOUT_S, check=False
        )
    except (OSError, ValueError) as error:
        raise ConfigError(f"secrets.key_command: can't be run: {error}") from error
    except subprocess.TimeoutExpired:
        raise ConfigError(f"secrets.key_command: has not ended after {_COMMAND_TIMEOUT_S} s") from None
    if done.returncode:
        # Its output may have a part of a key; what it reports is on its standard error.
        detail = done.stderr.decode("utf-8", "replace").strip()[:500]
        raise ConfigError(f"secrets.key_command: failed with exit status {done.returncode}: {detail}")
    return done.stdout[:_BYTES_MAX].decode("utf-8", "replace")


def _make(path: Path) -> None:
    """Makes the file with a new key, unless it exists."""
    _place(path, f"{_HEAD}{secrets.token_hex(KEY_BYTES)}\n")


def _place(path: Path, content: str) -> None:
    """Makes a private file, durable before anything is encrypted with its keys, unless it exists."""
    make_folder(path.parent)
    temporary = path.with_name(f"{path.name}.new")
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    # Only a whole file gets the name. Whoever makes it has the database's lock, so that no other is replaced.
    if path.exists():
        temporary.unlink()
    else:
        temporary.rename(path)
    sync(path.parent)

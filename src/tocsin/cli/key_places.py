"""Where `tocsin keys` manages keys: through a server's API, or in the store itself, which the first key requires.

The first key changes something for timers that are pending already: a server that required none until then calls private
addresses, and afterwards only those that `egress.allow` lists."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import typer

from tocsin.cli import output
from tocsin.cli.failure import Refused, WrongUsage
from tocsin.cli.options import NamedServer, StoreOptions, client_of, given

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tocsin.keys import KeyRequest
    from tocsin.model.access import ApiKey
    from tocsin.model.audit import AuditAction, Detail
    from tocsin.ports.store import Store, StoredRow
    from tocsin.ports.store import Store as OpenStore
    from tocsin.settings import Settings

T = TypeVar("T")


class KeyPlace(Protocol):
    """A place where keys are managed. Keys have the form that they have in the API. Every method raises Refused, Unreachable,
    StoreError."""

    #: For messages.
    name: str

    def create(self, request: KeyRequest, now_us: int, *, admin_if_first: bool, yes: bool) -> dict[str, Any]:
        """Creates a key; the result has its secret, which nothing shows again. The first one gets the role admin with
        `admin_if_first`, and is asked about, unless `yes`, if it suspends pending timers. Raises WrongUsage for an invalid
        one, or if nobody can be asked."""

    def listed(self) -> list[dict[str, Any]]:
        """The keys without their secrets, oldest first."""

    def revoke(self, key_id: str) -> None:
        """Revokes a key."""


def key_place(server: NamedServer, store: StoreOptions) -> KeyPlace:
    """The store if an option names it, else the server if there is one, else the store of the settings."""
    import os

    store_is_named = any(
        value is not None and str(value) != os.environ.get(variable)
        for value, variable in (
            (store.config, "TOCSIN_CONFIG"),
            (store.data_dir, "TOCSIN_DATA_DIR"),
            (store.store, "TOCSIN_STORE"),
        )
    )
    if server.server is None or store_is_named:
        if server.server is not None and server.server != os.environ.get("TOCSIN_URL"):
            raise WrongUsage("--server conflicts with --config, --data-dir and --store; name the server or its store")
        return _InStore(store)
    return _OnServer(server.server, server.key)


class _OnServer:
    """Through the API: the server applies changes at once, and records them. It creates no first key."""

    def __init__(self, url: str, key: str | None) -> None:
        self.name = url
        self._key = key

    def create(self, request: KeyRequest, now_us: int, *, admin_if_first: bool, yes: bool) -> dict[str, Any]:
        from tocsin.model.instants import format_instant

        body = given(
            role=request.role.value,
            name=request.name or None,
            namespaces=list(request.namespaces) or None,
            tenants=list(request.tenants) or None,
            expiresAt=None if request.expires_at is None else format_instant(request.expires_at),
        )
        return {"role": request.role.value, **self._post("create", body)}

    def listed(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._post("list", {})["keys"]
        return found

    def revoke(self, key_id: str) -> None:
        self._post("revoke", {"keyId": key_id})

    def _post(self, operation: str, body: dict[str, Any]) -> Any:
        from tocsin.cli.client import ServerRefused

        try:
            with client_of(self.name, self._key) as client:
                return client.post(f"/keys/{operation}", body)
        except ServerRefused as error:
            if error.status in (401, 403):
                raise Refused(
                    f"{error}\nKeys are managed with a key of role admin. Without one, on the server's machine: "
                    f"tocsin keys {operation} --data-dir DIR"
                ) from None
            raise


class _InStore:
    """In the store, even while a server runs; it applies changes within seconds."""

    def __init__(self, store: StoreOptions) -> None:
        self._store = store
        self._settings = store.settings()
        self.name = self._settings.store_url_redacted()

    def create(self, request: KeyRequest, now_us: int, *, admin_if_first: bool, yes: bool) -> dict[str, Any]:
        import msgspec

        from tocsin.keys import ApiKeys, make
        from tocsin.model.access import Role
        from tocsin.model.errors import InvalidInput, TooManyKeys

        try:
            made, secret = make(request, now_us)
        except InvalidInput as error:
            raise WrongUsage(str(error)) from None

        async def add(opened: OpenStore, shards: int) -> tuple[ApiKey, bool]:
            key, keys = made, ApiKeys(opened)
            if not await keys.seen_by(None):
                if not yes and (touched := await touched_by_first_key(opened, shards, self._settings)).found:
                    confirm(touched)
                if admin_if_first:
                    key = msgspec.structs.replace(key, role=Role.ADMIN)
            try:
                return key, await keys.add(key, partial(_record, opened, "no key was created, because"))
            except TooManyKeys as error:
                raise Refused(str(error)) from None

        key, is_first = self._with_store(add, create=self._is_named())
        if is_first:
            output.note(
                "This is the first key: a server that required none requires one from now on, and calls private addresses "
                "only if egress.allow lists them."
            )
        return {"keyId": key.key_id, "role": key.role.value, "key": secret}

    def listed(self) -> list[dict[str, Any]]:
        from tocsin.keys import ApiKeys
        from tocsin.model.instants import format_instant

        found = self._with_store(lambda opened, _: ApiKeys(opened).seen_by(None), create=False)
        return [
            {
                "keyId": key.key_id,
                "role": key.role.value,
                "namespaces": list(key.namespaces),
                "tenants": list(key.tenants),
                "createdAt": format_instant(key.created_at),
                "expiresAt": None if key.expires_at is None else format_instant(key.expires_at),
                "name": key.note,
            }
            for key in found
        ]

    def revoke(self, key_id: str) -> None:
        from tocsin.keys import ApiKeys
        from tocsin.model.errors import KeyNotFound

        async def remove(opened: OpenStore, _: int) -> None:
            try:
                await ApiKeys(opened).revoke(key_id, None, partial(_record, opened, f"key {key_id} is revoked, but"))
            except KeyNotFound as error:
                raise Refused(f"{error}; `tocsin keys list` shows them") from None
            if not await opened.api_keys():
                output.note("No key is left. A server that requires keys keeps requiring them until it is restarted.")

        self._with_store(remove, create=False)

    def _is_named(self) -> bool:
        """Whether the store's location was given. Otherwise no new store is created: a server that keeps its data elsewhere
        would never see the key."""
        from tocsin.settings import Origin, sources

        named = sources(vars(self._store))
        return any(named[field].origin is not Origin.DEFAULT for field in ("data_dir", "store"))

    def _with_store(self, work: Callable[[OpenStore, int], Awaitable[T]], *, create: bool) -> T:
        """The result of `work`, which gets the store and its number of shards. A missing store is created only with `create`:
        a typo in a path must not go unnoticed."""
        import asyncio

        from tocsin.server.stores import open_store

        opened = open_store(self._settings, node=False, memory=False, create=create)

        async def run() -> T:
            shards = await opened.open(self._settings.shards)
            try:
                return await work(opened, shards)
            finally:
                await opened.close()

        return asyncio.run(run())


async def _record(store: OpenStore, done: str, action: AuditAction, key_id: str, details: dict[str, Detail]) -> None:
    """Adds an entry to the audit trail. If the store fails, raises Refused with what has been `done`."""
    import getpass
    import os
    import socket
    import time

    from tocsin.model.audit import AuditEntry, AuditSource
    from tocsin.model.errors import StoreError

    with contextlib.suppress(OSError, KeyError):
        # In a container the user may have no name.
        details = {**details, "user": getpass.getuser()}
    entry = AuditEntry(
        time.time_ns() // 1_000,
        os.urandom(16),
        action,
        None,
        key_id,
        AuditSource.CLI,
        "",
        socket.gethostname(),
        details,
    )
    try:
        await store.put_audit(entry)
    except StoreError as error:
        raise Refused(f"{done} the audit entry could not be stored: {error}") from error


#: Touched timers that are counted, and stored ones that are examined for it: enough to decide by, in a few seconds.
COUNTED_MAX, EXAMINED_MAX = 10_000, 200_000
#: Rows of one page.
_PAGE_ROWS = 1_000
#: Hosts that the question names.
_HOSTS_SHOWN = 3


class Touched(NamedTuple):
    """The pending timers and schedules that the first key suspends: how many were found, the destinations of the first few,
    and whether there may be more."""

    found: int
    hosts: tuple[str, ...]
    more: bool


async def touched_by_first_key(store: Store, shards: int, settings: Settings) -> Touched:
    """Which pending timers the settings forbid to call once there is a key, by the texts of their URLs: an address or
    localhost is recognised, the name of another host isn't resolved. Raises StoreError."""
    from tocsin.http_client.egress import EgressPolicy
    from tocsin.http_client.target import parse_url
    from tocsin.model.errors import RecordUndecodable
    from tocsin.model.timer import decode_record
    from tocsin.server.peers import loopback
    from tocsin.service_calls.engine_timers import NAMESPACE

    count, hosts, examined = 0, dict[str, None](), 0
    reachable = any(not loopback(host) for host in (settings.host, *settings.origin_hosts()))
    if reachable or settings.egress_allow_private is not None:
        # The key changes nothing about what is called.
        return Touched(0, (), more=False)
    policy = EgressPolicy(allow=settings.egress_allow)
    async for row in _pending(store, shards):
        examined += 1
        if count >= COUNTED_MAX or examined > EXAMINED_MAX:
            return Touched(count, tuple(hosts), more=True)
        if row.namespace == NAMESPACE:
            continue
        try:
            url = decode_record(row.record).url
        except RecordUndecodable:
            continue
        if policy.check_url(url) is not None:
            count += 1
            if len(hosts) < _HOSTS_SHOWN:
                hosts[parse_url(url).origin.destination] = None
    return Touched(count, tuple(hosts), more=False)


async def _pending(store: Store, shards: int) -> AsyncIterator[StoredRow]:
    from tocsin.ports.store import KEY_MAX, KEY_MIN

    for shard_id in range(shards):
        after = KEY_MIN
        while after < KEY_MAX:
            page = await store.load(shard_id, after, KEY_MAX, _PAGE_ROWS)
            for row in page.rows:
                yield row
            after = page.complete_to


def confirm(touched: Touched) -> None:
    """Asks whether to create the key. Raises Refused if not, WrongUsage if nobody can be asked."""
    number, hosts = f"{touched.found:,}", ", ".join(touched.hosts)
    if touched.more:
        number, hosts = f"at least {number}", f"{hosts}, …"
    text = (
        f"This is the first key. Pending timers and schedules that lead to private addresses: {number} ({hosts}; names of "
        "hosts aren't resolved). A server that required no key until now suspends them when they are due, until egress.allow "
        "lists their addresses and it is restarted. Pending service calls to such addresses fail."
    )
    if not sys.stdin.isatty():
        raise WrongUsage(f"{text} Nothing was changed; create the key with --yes")
    typer.echo(text, err=True)
    if not typer.confirm("Create the key?", err=True):
        raise Refused("no key was created")

"""`tocsin keys`: API keys, which are managed through a server's API, or in the store itself, which the first key requires."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import typer

from tocsin.cli import output
from tocsin.cli.command import Refused, WrongUsage, command, group
from tocsin.cli.options import AsJson, NamedServer, StoreOptions, client_of, duration_us, given

if TYPE_CHECKING:
    from tocsin.keys import KeyRequest
    from tocsin.model.access import ApiKey
    from tocsin.model.audit import AuditAction, Detail
    from tocsin.ports.store import Store as OpenStore
    from tocsin.server.first_key import Touched

#: Time before its expiry from which the list marks a key as expiring soon.
SOON_US = 14 * 86_400 * 1_000_000

app = group(
    "API keys. With --server or TOCSIN_URL through that server, which requires a key of role admin; otherwise in "
    "the store directly, even while a server runs, so that creating the first key requires no key.",
    example="keys create --role write --namespace billing",
)


@command(app, "create", example="keys create --role write --namespace billing --note 'billing service'")
def create(
    *,
    role: Annotated[
        str | None,
        typer.Option(
            help="read, write or admin; each includes the previous ones.",
            show_default="write; for a first key without limits, admin",
        ),
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", "-n", help="Limit the key to this namespace; may be repeated.", show_default="all"),
    ] = None,
    tenant: Annotated[
        list[str] | None, typer.Option(help="Limit the key to this tenant; may be repeated.", show_default="all")
    ] = None,
    operation: Annotated[
        list[str] | None,
        typer.Option(
            help="Limit the key to this operation, such as timers/create, to a group such as 'timers/*', or to read; may be "
            "repeated.",
            show_default="all that its role allows",
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NETWORK",
            help="Limit the key to requests from this address or network, such as 10.1.0.0/16; may be repeated.",
            show_default="everywhere",
        ),
    ] = None,
    note: Annotated[str, typer.Option("--note", "--name", help="What the key is for.")] = "",
    expires_in: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Lifetime of the key: 90d.", show_default="never")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Don't ask, even if the first key suspends pending timers.")
    ] = False,
    server: NamedServer,
    store: StoreOptions,
    as_json: AsJson = False,
) -> None:
    """Create a key and show its secret once: only a hash is stored. The first key is asked about if pending timers call
    private addresses, which a server that requires keys calls only if egress.allow lists them."""
    from tocsin.keys import KeyRequest
    from tocsin.model.access import Role
    from tocsin.model.instants import format_instant

    if role is not None and role not in list(Role):
        raise WrongUsage(f"--role: {role!r} is not one of {', '.join(Role)}")
    now_us = time.time_ns() // 1_000
    expires_at = None if expires_in is None else now_us + _lifetime_us(expires_in)
    place = key_place(server, store)
    limits = {
        "namespaces": tuple(namespace or ()),
        "tenants": tuple(tenant or ()),
        "operations": tuple(operation or ()),
        "sources": tuple(source or ()),
    }
    request = KeyRequest(Role(role or Role.WRITE), name=note, expires_at=expires_at, **limits)
    # Whoever requires keys from now on has to be able to manage them, and the rest, with the first one.
    made = place.create(request, now_us, admin_if_first=role is None and not any(limits.values()), yes=yes)
    if as_json:
        expiry = {} if expires_at is None else {"expiresAt": format_instant(expires_at)}
        output.print_json({"keyId": made["keyId"], "role": made["role"], **expiry, "secret": made["key"]})
    else:
        until = "" if expires_at is None else f", valid until {format_instant(expires_at)}"
        output.note(
            f"Key {made['keyId']} ({made['role']}{until}), stored in {place.name}. Its secret is shown only now:"
        )
        typer.echo(made["key"])


@command(app, "list", example="keys list")
def list_keys(*, server: NamedServer, store: StoreOptions, as_json: AsJson = False) -> None:
    """List the keys, without their secrets."""
    found = key_place(server, store).listed()
    if as_json:
        fields = (
            "keyId",
            "role",
            "namespaces",
            "tenants",
            "operations",
            "sources",
            "createdAt",
            "expiresAt",
            "lastUsedAt",
        )
        output.print_json([{**{name: key.get(name) for name in fields}, "note": key["name"]} for key in found])
        return
    output.print_table(
        ("key", "role", "namespaces", "tenants", "operations", "sources", "created", "expires", "last used", "note"),
        [
            (
                key["keyId"],
                key["role"],
                ", ".join(key["namespaces"]) or "all",
                ", ".join(key["tenants"]) or "all",
                ", ".join(key.get("operations", ())) or "all",
                ", ".join(key.get("sources", ())) or "all",
                key["createdAt"],
                _expiry(key.get("expiresAt")),
                key.get("lastUsedAt", ""),
                key["name"],
            )
            for key in found
        ],
    )


@command(app, "revoke", example="keys revoke 1f0c9a7be2d4")
def revoke(
    *,
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="Id of the key, from `keys list`.")],
    server: NamedServer,
    store: StoreOptions,
) -> None:
    """Revoke a key. A running server refuses it within seconds."""
    key_place(server, store).revoke(key_id)
    typer.echo(f"Key {key_id} is revoked.")


@command(app, "secrets", example="keys secrets")
def secrets(
    *,
    forget: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="Servers start without this key from now on. What is encrypted with it can't be decrypted any more.",
        ),
    ] = None,
    store: StoreOptions,
    as_json: AsJson = False,
) -> None:
    """List the keys under which secrets in the store are encrypted: the one that encrypts, and former ones with the number of
    timers, schedules, monitors, namespaces and jobs that still need them (waiting), and that of tenants and service calls
    that go on or have failed (calls). What else has finished needs theirs until its retention is over, and to be replayed
    until failure_retention is."""
    from tocsin.model.instants import format_instant
    from tocsin.server.seals import SecretKeys

    keys = SecretKeys(store.settings())
    place = _InStore(store)
    if forget is not None:
        if not place.with_store(lambda opened, _: keys.forget(opened, forget), create=False):
            raise Refused(f"no secret key {forget!r} is known; `tocsin keys secrets` shows them")
        typer.echo(f"Key {forget} is no longer required.")
        return
    found = place.with_store(lambda opened, _: keys.listed(opened), create=False)
    rows = [
        {
            "keyId": each.key.id,
            "state": each.state,
            "since": format_instant(each.key.since),
            "waiting": each.key.waiting,
            "callsWaiting": each.key.calls_waiting,
            "callsCheckedAt": None if each.key.calls_checked_at is None else format_instant(each.key.calls_checked_at),
            "checkedAt": None if each.key.checked_at is None else format_instant(each.key.checked_at),
        }
        for each in found
    ]
    if as_json:
        output.print_json(rows)
        return
    output.print_table(
        ("key", "state", "since", "waiting", "checked", "calls"),
        [
            (
                row["keyId"],
                row["state"],
                row["since"],
                "" if row["waiting"] is None else row["waiting"],
                row["checkedAt"] or "",
                "" if row["callsWaiting"] is None else row["callsWaiting"],
            )
            for row in rows
        ],
    )


@command(app, "signing", example="keys signing")
def signing(
    *,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace",
            help="Make a key that signs at once, as after a leak. Former ones are removed after an hour.",
        ),
    ] = False,
    store: StoreOptions,
    as_json: AsJson = False,
) -> None:
    """List the keys that sign the tokens of credentials of type jwt: the one that signs, the next one, former ones, and those
    that can't be decrypted (unusable)."""
    from tocsin.model.credential import SigningKey
    from tocsin.model.instants import format_instant
    from tocsin.server.outgoing import known_signing_keys
    from tocsin.server.seals import open_seals

    place, now_us = _InStore(store), time.time_ns() // 1_000

    async def work(opened: OpenStore, _: int) -> list[tuple[SigningKey, str]]:
        keys = known_signing_keys(
            store.settings(), opened, await open_seals(store.settings(), opened, now_us, create=False)
        )
        if replace and (not await keys.listed(now_us) or await keys.replace(now_us) is None):
            raise Refused("no key was replaced: there is none, or the server has made another one at this moment")
        return await keys.listed(now_us)

    rows = [
        {"kid": key.kid, "state": state, "since": format_instant(key.signs_from)}
        for key, state in place.with_store(work, create=False)
    ]
    if as_json:
        output.print_json(rows)
    else:
        output.print_table(("key", "state", "since"), [tuple(row.values()) for row in rows])


def _lifetime_us(text: str) -> int:
    from tocsin.keys import LIFETIME_US_MAX

    lifetime_us = duration_us("--expires-in", text)
    if not 0 < lifetime_us <= LIFETIME_US_MAX:
        raise WrongUsage(
            f"--expires-in: {text!r} must be greater than zero and at most 100 years; without it, a key never expires"
        )
    return lifetime_us


def _expiry(expires_at: str | None) -> str:
    """When a key expires, with a mark if it has expired or expires soon."""
    from tocsin.model.instants import parse_instant

    if expires_at is None:
        return "never"
    left_us = parse_instant(expires_at) - time.time_ns() // 1_000
    return expires_at + (" (expired)" if left_us <= 0 else " (soon)" if left_us <= SOON_US else "")


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
            operations=list(request.operations) or None,
            sources=list(request.sources) or None,
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
            if error.status == 403 and "expiresAt" in str(error):
                # The key may manage others, only none that outlives it.
                raise Refused(f"{error}\nGive --expires-in, with less time than your key has left") from None
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
        from tocsin.server.first_key import touched_by_first_key
        from tocsin.web.api.scopes import OPERATION_NAMES

        try:
            made, secret = make(request, now_us, OPERATION_NAMES)
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

        key, is_first = self.with_store(add, create=self._is_named())
        if is_first:
            output.note(
                "This is the first key: a server that required none requires one from now on, and calls private addresses "
                "only if egress.allow lists them."
            )
        return {"keyId": key.key_id, "role": key.role.value, "key": secret}

    def listed(self) -> list[dict[str, Any]]:
        import msgspec

        from tocsin.keys import ApiKeys
        from tocsin.web.http.administration import KeyList, keys_answer

        async def read(opened: OpenStore, _: int) -> KeyList:
            keys = ApiKeys(opened)
            return keys_answer(await keys.seen_by(None), await keys.uses())

        shown: list[dict[str, Any]] = msgspec.to_builtins(self.with_store(read, create=False))["keys"]
        return shown

    def revoke(self, key_id: str) -> None:
        from tocsin.keys import ApiKeys
        from tocsin.model.errors import KeyNotFound

        async def remove(opened: OpenStore, _: int) -> None:
            try:
                await ApiKeys(opened).revoke(key_id, None, partial(_record, opened, f"key {key_id} is revoked, but"))
            except KeyNotFound as error:
                raise Refused(f"{error}; `tocsin keys list` shows them") from None
            if not await ApiKeys(opened).seen_by(None):
                output.note("No key is left. A server that requires keys keeps requiring them until it is restarted.")

        self.with_store(remove, create=False)

    def _is_named(self) -> bool:
        """Whether the store's location was given. Otherwise no new store is created: a server that keeps its data elsewhere
        would never see the key."""
        from tocsin.settings import Origin, sources

        named = sources(vars(self._store))
        return any(named[field].origin is not Origin.DEFAULT for field in ("data_dir", "store"))

    def with_store(self, work: Callable[[OpenStore, int], Awaitable[T]], *, create: bool) -> T:
        """The result of `work`, which gets the store and its number of shards. A missing store is created only with `create`:
        a typo in a path must not go unnoticed."""
        import asyncio

        from tocsin.server.stores import open_store
        from tocsin.server.transfer_mark import refuse_transferred

        opened = open_store(self._settings, node=False, memory=False, create=create)

        async def run() -> T:
            shards = await opened.open(self._settings.shards)
            try:
                # No server would ever see what is written to a store that was transferred.
                await refuse_transferred(opened)
                return await work(opened, shards)
            finally:
                await opened.close()

        return asyncio.run(run())


async def _record(store: OpenStore, done: str, action: AuditAction, key_id: str, details: dict[str, Detail]) -> None:
    """Adds an entry to the audit trail. If the store fails, raises Refused with what has been `done`."""
    import getpass
    import socket

    from tocsin.administration import put_audit
    from tocsin.model.audit import AuditEntry, AuditSource
    from tocsin.model.errors import StoreError

    with contextlib.suppress(OSError, KeyError):
        # In a container the user may have no name.
        details = {**details, "user": getpass.getuser()}
    now_us, host = time.time_ns() // 1_000, socket.gethostname()
    entry = AuditEntry(now_us, os.urandom(16), action, None, key_id, AuditSource.CLI, "", host, details)
    try:
        await put_audit(store, entry)
    except StoreError as error:
        raise Refused(f"{done} the audit entry could not be stored: {error}") from error


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

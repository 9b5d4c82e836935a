"""`tocsin keys`: API keys. The commands open the store directly, so that creating the first key requires no open server."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from tocsin.cli import output
from tocsin.cli.command import command, group
from tocsin.cli.failure import Refused, WrongUsage
from tocsin.cli.options import LOCAL_STORE, AsJson, StoreOptions, duration_us

if TYPE_CHECKING:
    from tocsin.model.access import ApiKey
    from tocsin.model.audit import AuditAction, Detail
    from tocsin.ports.store import Store as OpenStore

T = TypeVar("T")

#: Time before its expiry from which the list marks a key as expiring soon.
SOON_US = 14 * 86_400 * 1_000_000

app = group(
    "API keys. These commands open the store directly, even while a server runs; it applies changes within seconds.",
    example="keys create --role write --namespace billing",
)


@command(app, "create", example="keys create --role write --namespace billing --note 'billing service'")
def create(
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
    note: Annotated[str, typer.Option("--note", "--name", help="What the key is for.")] = "",
    expires_in: Annotated[
        str | None,
        typer.Option("--expires-in", metavar="DURATION", help="Lifetime of the key: 90d.", show_default="never"),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Don't ask, even if the first key suspends pending timers.")
    ] = False,
    store: StoreOptions = LOCAL_STORE,
    as_json: AsJson = False,
) -> None:
    """Create a key and show its secret once: only a hash is stored. The first key is asked about if pending timers call
    private addresses, which a server that requires keys calls only if egress.allow lists them."""
    import time

    import msgspec

    from tocsin.cli.first_key import confirm, touched_by_first_key
    from tocsin.keys import ApiKeys, KeyRequest, make
    from tocsin.model.access import Role
    from tocsin.model.errors import InvalidInput, TooManyKeys
    from tocsin.model.instants import format_instant

    if role is not None and role not in list(Role):
        raise WrongUsage(f"--role: {role!r} is not one of {', '.join(Role)}")
    now_us = time.time_ns() // 1_000
    expires_at = None if expires_in is None else now_us + _lifetime_us(expires_in)
    limits = tuple(namespace or ()), tuple(tenant or ())
    try:
        made = make(KeyRequest(Role(role or Role.WRITE), *limits, note, expires_at), now_us)
    except InvalidInput as error:
        raise WrongUsage(str(error)) from None

    async def add(opened: OpenStore, shards: int) -> tuple[ApiKey, bool]:
        key, keys = made.key, ApiKeys(opened)
        if not await keys.seen_by(None):
            if not yes and (touched := await touched_by_first_key(opened, shards, store.settings())).found:
                confirm(touched)
            if role is None and not any(limits):
                # Whoever requires keys from now on has to be able to manage them, and the rest, with it.
                key = msgspec.structs.replace(key, role=Role.ADMIN)
        try:
            return key, await keys.add(key, partial(_record, opened, "no key was created, because"))
        except TooManyKeys as error:
            raise Refused(str(error)) from None

    key, is_first = _with_store(store, add, create=_store_is_named(store))
    key_id, secret = key.key_id, made.secret
    if is_first:
        output.note(
            "This is the first key: a server that required none requires one from now on, and calls private addresses only "
            "if egress.allow lists them."
        )
    if as_json:
        expiry = {} if key.expires_at is None else {"expiresAt": format_instant(key.expires_at)}
        output.print_json({"keyId": key_id, "role": key.role, **expiry, "secret": secret})
    else:
        until = "" if key.expires_at is None else f", valid until {format_instant(key.expires_at)}"
        where = store.settings().store_url_redacted()
        output.note(f"Key {key_id} ({key.role}{until}), stored in {where}. Its secret is shown only now:")
        typer.echo(secret)


@command(app, "list", example="keys list")
def list_keys(store: StoreOptions = LOCAL_STORE, as_json: AsJson = False) -> None:
    """List the keys, without their secrets."""
    from tocsin.keys import ApiKeys
    from tocsin.model.instants import format_instant

    found = _with_store(store, lambda opened, _: ApiKeys(opened).seen_by(None), create=False)
    if as_json:
        output.print_json(
            [
                {
                    "keyId": key.key_id,
                    "role": key.role,
                    "namespaces": key.namespaces,
                    "tenants": key.tenants,
                    "createdAt": format_instant(key.created_at),
                    "expiresAt": None if key.expires_at is None else format_instant(key.expires_at),
                    "note": key.note,
                }
                for key in found
            ]
        )
        return
    output.print_table(
        ("key", "role", "namespaces", "tenants", "created", "expires", "note"),
        [
            (
                key.key_id,
                key.role,
                ", ".join(key.namespaces) or "all",
                ", ".join(key.tenants) or "all",
                format_instant(key.created_at),
                _expiry(key),
                key.note,
            )
            for key in found
        ],
    )


@command(app, "revoke", example="keys revoke 1f0c9a7be2d4")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="Id of the key, from `keys list`.")],
    store: StoreOptions = LOCAL_STORE,
) -> None:
    """Revoke a key. A running server refuses it within seconds."""
    from tocsin.keys import ApiKeys
    from tocsin.model.errors import KeyNotFound

    async def remove(opened: OpenStore, shards: int) -> None:
        try:
            await ApiKeys(opened).revoke(key_id, None, partial(_record, opened, f"key {key_id} is revoked, but"))
        except KeyNotFound as error:
            raise Refused(f"{error}; `tocsin keys list` shows them") from None
        if not await opened.api_keys():
            output.note("No key is left. A server that requires keys keeps requiring them until it is restarted.")

    _with_store(store, remove, create=False)
    typer.echo(f"Key {key_id} is revoked.")


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


def _lifetime_us(text: str) -> int:
    from tocsin.keys import LIFETIME_US_MAX

    lifetime_us = duration_us("--expires-in", text)
    if not 0 < lifetime_us <= LIFETIME_US_MAX:
        raise WrongUsage(
            f"--expires-in: {text!r} must be greater than zero and at most 100 years; without it, a key never expires"
        )
    return lifetime_us


def _expiry(key: ApiKey) -> str:
    """When the key expires, with a mark if it has expired or expires soon."""
    import time

    from tocsin.model.instants import format_instant

    if key.expires_at is None:
        return "never"
    now_us = time.time_ns() // 1_000
    word = " (expired)" if key.expired(now_us) else " (soon)" if key.expired(now_us + SOON_US) else ""
    return format_instant(key.expires_at) + word


def _store_is_named(store: StoreOptions) -> bool:
    """Whether the store's location was given. Otherwise no new store is created: a server that keeps its data elsewhere
    would never see the key."""
    from tocsin.settings import Origin, sources

    named = sources(vars(store))
    return any(named[field].origin is not Origin.DEFAULT for field in ("data_dir", "store"))


def _with_store(store: StoreOptions, work: Callable[[OpenStore, int], Awaitable[T]], *, create: bool) -> T:
    """The result of `work`, which gets the store and its number of shards. A missing store is created only with `create`: a
    typo in a path must not go unnoticed."""
    import asyncio

    from tocsin.server.stores import open_store

    settings = store.settings()
    opened = open_store(settings, node=False, memory=False, create=create)

    async def run() -> T:
        shards = await opened.open(settings.shards)
        try:
            return await work(opened, shards)
        finally:
            await opened.close()

    return asyncio.run(run())

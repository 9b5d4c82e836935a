"""`tocsin keys`: API keys, kept in the store itself, so that the first one needs no server that trusts anybody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from tocsin.cli import output
from tocsin.cli.failure import Refused, WrongUsage
from tocsin.cli.options import AsJson, ConfigFile, DataDir, Store

if TYPE_CHECKING:
    from tocsin.ports.store import Store as OpenStore

T = TypeVar("T")

KEY_ID_BYTES = 6
#: 32 random bytes are 43 URL-safe characters.
SECRET_BYTES = 32

app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    help="API keys. These commands work on the store, also beside a running server, which follows within seconds.",
    epilog="Example: tocsin keys create --role write --namespace billing",
)


@app.command("create", epilog="Example: tocsin keys create --role write --namespace billing --note 'billing service'")
def create(
    role: Annotated[str, typer.Option(help="read, write or admin; each includes the ones before.")] = "write",
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", "-n", help="Only for this namespace; may be repeated.", show_default="all"),
    ] = None,
    tenant: Annotated[
        list[str] | None, typer.Option(help="Only for this tenant; may be repeated.", show_default="all")
    ] = None,
    note: Annotated[str, typer.Option(help="What the key is for.")] = "",
    config: ConfigFile = None,
    data_dir: DataDir = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and show its secret, this once: only a hash is kept."""
    import secrets
    import time

    from tocsin.model.access import ApiKey, Role, hash_key
    from tocsin.model.namespace import NAME

    if role not in list(Role):
        raise WrongUsage(f"--role: {role!r} is none of {', '.join(Role)}")
    for name in namespace or []:
        if not NAME.match(name):
            raise WrongUsage(f"--namespace: {name!r} is no name; 1 to 255 of A-Z a-z 0-9 . _ : -")
    key_id = secrets.token_hex(KEY_ID_BYTES)
    secret = f"tk_{key_id}_{secrets.token_urlsafe(SECRET_BYTES)}"
    key = ApiKey(
        key_id=key_id,
        hash=hash_key(secret),
        role=Role(role),
        namespaces=tuple(namespace or ()),
        tenants=tuple(tenant or ()),
        created_at=time.time_ns() // 1_000,
        note=note,
    )
    _with_store(config, data_dir, store, lambda opened: opened.put_api_key(key))
    if as_json:
        output.print_json({"keyId": key_id, "role": role, "secret": secret})
    else:
        output.note(f"Key {key_id} ({role}). Its secret is shown only now:")
        typer.echo(secret)


@app.command("list", epilog="Example: tocsin keys list")
def list_keys(
    config: ConfigFile = None, data_dir: DataDir = None, store: Store = None, as_json: AsJson = False
) -> None:
    """List the keys, without their secrets."""
    from tocsin.model.instants import format_instant

    found = _with_store(config, data_dir, store, lambda opened: opened.api_keys(), create=False)
    if as_json:
        output.print_json(
            [
                {
                    "keyId": key.key_id,
                    "role": key.role,
                    "namespaces": key.namespaces,
                    "tenants": key.tenants,
                    "createdAt": format_instant(key.created_at),
                    "note": key.note,
                }
                for key in found
            ]
        )
        return
    output.print_table(
        ("key", "role", "namespaces", "tenants", "created", "note"),
        [
            (
                key.key_id,
                key.role,
                ", ".join(key.namespaces) or "all",
                ", ".join(key.tenants) or "all",
                format_instant(key.created_at),
                key.note,
            )
            for key in found
        ],
    )


@app.command("revoke", epilog="Example: tocsin keys revoke 1f0c9a7be2d4")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="The key's id, as `keys list` shows it.")],
    config: ConfigFile = None,
    data_dir: DataDir = None,
    store: Store = None,
) -> None:
    """Remove a key. A running server refuses it within seconds."""
    if not _with_store(config, data_dir, store, lambda opened: opened.delete_api_key(key_id), create=False):
        raise Refused(f"no key has the id {key_id}; `tocsin keys list` shows them")
    typer.echo(f"Key {key_id} is revoked.")


def _with_store(
    config: ConfigFile,
    data_dir: DataDir,
    store: Store,
    work: Callable[[OpenStore], Awaitable[T]],
    create: bool = True,
) -> T:
    """What `work` returns. A store that isn't there is only made with `create`: a slip in a path should be noticed."""
    import asyncio

    from tocsin.config import load_settings
    from tocsin.server.stores import open_store

    settings = load_settings({"config": config, "data_dir": data_dir, "store": store})
    opened = open_store(settings, node=False, memory=False, create=create)

    async def run() -> T:
        await opened.open(settings.shards)
        try:
            return await work(opened)
        finally:
            await opened.close()

    return asyncio.run(run())

"""`tocsin keys`: API keys."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli import output
from tocsin.cli.command import command, group
from tocsin.cli.failure import WrongUsage
from tocsin.cli.key_places import key_place
from tocsin.cli.options import LOCAL_STORE, NO_SERVER, AsJson, NamedServer, StoreOptions, duration_us

#: Time before its expiry from which the list marks a key as expiring soon.
SOON_US = 14 * 86_400 * 1_000_000

app = group(
    "API keys. With --server or TOCSIN_URL through that server, which requires a key of role admin; otherwise in "
    "the store directly, even while a server runs, so that creating the first key requires no key.",
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
    server: NamedServer = NO_SERVER,
    store: StoreOptions = LOCAL_STORE,
    as_json: AsJson = False,
) -> None:
    """Create a key and show its secret once: only a hash is stored. The first key is asked about if pending timers call
    private addresses, which a server that requires keys calls only if egress.allow lists them."""
    import time

    from tocsin.keys import KeyRequest
    from tocsin.model.access import Role
    from tocsin.model.instants import format_instant

    if role is not None and role not in list(Role):
        raise WrongUsage(f"--role: {role!r} is not one of {', '.join(Role)}")
    now_us = time.time_ns() // 1_000
    expires_at = None if expires_in is None else now_us + _lifetime_us(expires_in)
    place = key_place(server, store)
    limits = tuple(namespace or ()), tuple(tenant or ())
    request = KeyRequest(Role(role or Role.WRITE), *limits, note, expires_at)
    # Whoever requires keys from now on has to be able to manage them, and the rest, with the first one.
    made = place.create(request, now_us, admin_if_first=role is None and not any(limits), yes=yes)
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
def list_keys(server: NamedServer = NO_SERVER, store: StoreOptions = LOCAL_STORE, as_json: AsJson = False) -> None:
    """List the keys, without their secrets."""
    found = key_place(server, store).listed()
    if as_json:
        fields = ("keyId", "role", "namespaces", "tenants", "createdAt", "expiresAt")
        output.print_json([{**{name: key.get(name) for name in fields}, "note": key["name"]} for key in found])
        return
    output.print_table(
        ("key", "role", "namespaces", "tenants", "created", "expires", "note"),
        [
            (
                key["keyId"],
                key["role"],
                ", ".join(key["namespaces"]) or "all",
                ", ".join(key["tenants"]) or "all",
                key["createdAt"],
                _expiry(key.get("expiresAt")),
                key["name"],
            )
            for key in found
        ],
    )


@command(app, "revoke", example="keys revoke 1f0c9a7be2d4")
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="Id of the key, from `keys list`.")],
    server: NamedServer = NO_SERVER,
    store: StoreOptions = LOCAL_STORE,
) -> None:
    """Revoke a key. A running server refuses it within seconds."""
    key_place(server, store).revoke(key_id)
    typer.echo(f"Key {key_id} is revoked.")


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
    import time

    from tocsin.model.instants import parse_instant

    if expires_at is None:
        return "never"
    left_us = parse_instant(expires_at) - time.time_ns() // 1_000
    return expires_at + (" (expired)" if left_us <= 0 else " (soon)" if left_us <= SOON_US else "")

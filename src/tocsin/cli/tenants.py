"""`tocsin tenants`."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.command import command, group
from tocsin.cli.options import LOCAL_SERVER, AsJson, Server
from tocsin.cli.rotation import Force, Grace, NewSecret, rotation, show_rotation

app = group(
    "Tenants: the secrets that sign their service calls.",
    example="tenants rotate-secret 01985a3e-7c1b-7d2e-9f64-3b8a5c0d1e2f",
)


@app.callback()
def tenants() -> None:
    """Keeps the name of the only command: typer would drop it."""


@command(app, "rotate-secret", example="tenants rotate-secret 01985a3e-7c1b-7d2e-9f64-3b8a5c0d1e2f")
def rotate_secret(
    tenant: Annotated[str, typer.Argument(metavar="TENANT", envvar="TOCSIN_TENANT", help="Id of the tenant.")],
    secret: NewSecret = None,
    grace: Grace = None,
    force: Force = False,
    server: Server = LOCAL_SERVER,
    as_json: AsJson = False,
) -> None:
    """Sign a tenant's service calls with a new secret; the previous one keeps signing during the grace period."""
    answer = server.post("/tenants/rotateSecret", rotation("tenantId", tenant, secret, grace, force))
    show_rotation(answer, as_json)

"""`tocsin credentials`: what the requests of timers identify themselves with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tocsin.cli import output
from tocsin.cli.command import Refused, WrongUsage, command, group
from tocsin.cli.options import AsJson, ServerOptions, content, given
from tocsin.model.credential_type import SECRET_OF, ClientAuth, CredentialType

app = group(
    "Credentials: what the requests of timers identify themselves with (--credential).",
    example="credentials put billing-api --type bearer --host api.example.com --secret @token.txt",
)

Namespace = Annotated[str, typer.Option("--namespace", "-n", metavar="NAME", help="The credentials' namespace.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The credential's name.")]


@command(app, "put", example="credentials put billing-api --type bearer --host api.example.com --secret @token.txt")
def put(
    *,
    name: Name,
    kind: Annotated[CredentialType, typer.Option("--type", help="How a request identifies itself.")],
    hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="HOST",
            help="Where it may be sent: host or host:port, or http://host:port for plain HTTP. May be repeated.",
            show_default="this machine only",
        ),
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="The password, token, client secret or private key: text, @file, or - for stdin. Without it the stored one "
            "stays.",
        ),
    ] = None,
    username: Annotated[str | None, typer.Option(metavar="NAME", help="Of basic.")] = None,
    token_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Of oauth2ClientCredentials: the token endpoint.")
    ] = None,
    client_id: Annotated[str | None, typer.Option(metavar="ID", help="Of oauth2ClientCredentials.")] = None,
    client_authentication: Annotated[
        ClientAuth | None,
        typer.Option(
            help="Of oauth2ClientCredentials: whether the secret is sent in a header or in the body.",
            show_default="basic",
        ),
    ] = None,
    scope: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Of oauth2ClientCredentials: the scopes to ask for.")
    ] = None,
    audience: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Of jwt, and of oauth2ClientCredentials.")
    ] = None,
    lifetime: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Of jwt: how long each is valid.", show_default="10m")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of mtls: the client's certificate in PEM.")
    ] = None,
    ca: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Authorities in PEM that are trusted instead of the system's.")
    ] = None,
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="What it is for, in one line.")] = None,
    expected_version: Annotated[
        int | None, typer.Option(metavar="N", help="Only if it has this version; 0: only if there is none.", min=0)
    ] = None,
    namespace: Namespace = "default",
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Create a credential, or replace all that it has. What names it is not touched."""
    request = given(
        namespace=namespace,
        name=name,
        type=kind.value,
        hosts=hosts or None,
        username=username,
        tokenUrl=token_url,
        clientId=client_id,
        clientAuthentication=None if client_authentication is None else client_authentication.value,
        scope=scope,
        audience=audience,
        lifetime=lifetime,
        certificate=_text("--certificate", certificate),
        ca=_text("--ca", ca),
        description=description,
        expectedVersion=expected_version,
    )
    if secret is not None:
        if kind not in SECRET_OF:
            raise WrongUsage(f"--secret: a credential of type {kind} has none; leave it out")
        request[SECRET_OF[kind]] = _secret(secret)
    output.print_object(server.post("/credentials/put", request), as_json)


@command(app, "get", example="credentials get billing-api")
def get(*, name: Name, namespace: Namespace = "default", server: ServerOptions, as_json: AsJson = False) -> None:
    """Show a credential without its secret."""
    output.print_object(server.post("/credentials/get", {"namespace": namespace, "name": name}), as_json)


@command(app, "list", example="credentials list --namespace billing")
def list_credentials(
    *,
    namespace: Namespace = "default",
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of credentials.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="nextCursor of the previous page.")] = None,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """List the credentials of a namespace by name, without their secrets."""
    answer = server.post("/credentials/list", given(namespace=namespace, limit=limit, cursor=cursor))
    columns = ("name", "type", "hosts", "description", "updatedAt", "managedBy")
    output.print_objects(answer, as_json, "credentials", columns, answer["credentials"])


@command(app, "test", example="credentials test billing-api --url https://api.example.com/health")
def test(
    *,
    name: Name,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Sends HEAD there, instead of only opening connections.")
    ] = None,
    namespace: Namespace = "default",
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Try a credential: fetch its token, and open connections to its hosts. Exit status 1 if something failed."""
    answer = server.post("/credentials/test", given(namespace=namespace, name=name, url=url))
    if as_json:
        output.print_json(answer)
    else:
        columns = ("what", "target", "ok", "detail")
        output.print_table(columns, ([output.cell(step[each]) for each in columns] for step in answer["steps"]))
    if not answer["ok"]:
        raise Refused(f"{name} can't be used as it is")


@command(app, "delete", example="credentials delete billing-api")
def delete(*, name: Name, namespace: Namespace = "default", server: ServerOptions) -> None:
    """Delete a credential. Due timers that name it wait until there is one of its name again."""
    server.post("/credentials/delete", {"namespace": namespace, "name": name})
    output.note(f"{name} is deleted.")


def _secret(given_as: str) -> str:
    try:
        text = content("--secret", given_as).decode()
    except UnicodeDecodeError:
        raise WrongUsage("--secret: the file is no text") from None
    # Editors and echo end a file with a line break.
    return text if "-----BEGIN" in text else text.rstrip("\r\n")


def _text(option: str, path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text()
    except UnicodeDecodeError:
        raise WrongUsage(f"{option}: {path} is no text; convert it to PEM") from None

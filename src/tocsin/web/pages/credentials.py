"""`/credentials`: the credentials of a namespace, their test, and the form that creates and changes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from tocsin.model.access import Role
from tocsin.model.credential import CREDENTIALS_MAX
from tocsin.model.credential_type import SECRET_OF, CredentialType
from tocsin.model.errors import InvalidInput, TooManyCredentials
from tocsin.ports.credentials import CredentialTest
from tocsin.web.http import credentials as wire
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.admin.namespaces import settings_path
from tocsin.web.pages.context import Fields, RequestContext
from tocsin.web.pages.forms import Body
from tocsin.web.pages.put_forms import PutForm
from tocsin.web.pages.site import Site, preferred, route

#: The types in words.
_TYPES = {
    CredentialType.BASIC: "User and password",
    CredentialType.BEARER: "Token",
    CredentialType.OAUTH2: "OAuth 2 client credentials",
    CredentialType.JWT: "JWT signed by this service",
    CredentialType.MTLS: "Client certificate",
}
#: The fields of the form by their names in the API, in their order on the page; and those that only some types have.
_LABELS = {
    "name": "Name",
    "type": "Type",
    "hosts": "Hosts",
    "username": "User",
    "password": "Password",
    "token": "Token",
    "tokenUrl": "Token endpoint",
    "clientId": "Client id",
    "clientSecret": "Client secret",
    "clientAuthentication": "Client secret in",
    "scope": "Scopes",
    "audience": "Audience",
    "lifetime": "Lifetime",
    "certificate": "Certificate",
    "privateKey": "Private key",
    "ca": "Authorities",
    "description": "Description",
    "url": "URL",
}
_FIELDS: dict[CredentialType, tuple[str, ...]] = {
    CredentialType.BASIC: ("username", "password"),
    CredentialType.BEARER: ("token",),
    CredentialType.OAUTH2: ("tokenUrl", "clientId", "clientSecret", "clientAuthentication", "scope", "audience"),
    CredentialType.JWT: ("audience", "lifetime"),
    CredentialType.MTLS: ("certificate", "privateKey"),
}
_COMMON = ("name", "hosts", "ca", "description")
#: Fields of many lines, and those that are never shown again.
LONG = frozenset({"hosts", "certificate", "privateKey", "ca"})
_SECRETS = frozenset(SECRET_OF.values())
_reader = JsonReader(wire.PutCredential)


class CredentialsPage(PutForm):
    """The table, the test, the form, and what changes a credential."""

    kind, labels, name_field = "credential", _LABELS, "name"
    role = Role.ADMIN
    kept = "What you entered is still here, except secrets."
    taken, too_many = "has a credential already: edit that one", (TooManyCredentials,)

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._requests = wire.CredentialRequests(site.service.credentials, site.rules, site.audit)

    @route("GET", "/credentials")
    async def table(self, context: RequestContext) -> Response:
        """The credentials of a namespace."""
        namespace = context.query.exact("namespace") or preferred(await self.visible_namespaces(context))
        return await self._table(context, namespace)

    @route("POST", "/credentials/test")
    async def test(self, context: RequestContext) -> Response:
        """Tries a credential, and shows what happened above the table."""
        name = wire.TestCredential(context.form.exact("namespace"), context.form.exact("name"))
        context.permit(Role.ADMIN, name.namespace)
        return await self._table(context, name.namespace, (name.name, await self._requests.test(name)))

    @route("GET", "/credentials/new")
    async def new(self, context: RequestContext) -> Response:
        """The form for a new credential of a type."""
        namespace = context.query.exact("namespace") or preferred(await self.visible_namespaces(context, Role.ADMIN))
        context.permit(Role.ADMIN, namespace)
        return await self.form(context, {"namespace": namespace, "type": _type_of(context.query)}, edited=False)

    @route("POST", "/credentials/delete")
    async def delete(self, context: RequestContext) -> Response:
        """Deletes a credential."""
        name = wire.DeleteCredential(context.form.exact("namespace"), context.form.exact("name"))
        context.permit(Role.ADMIN, name.namespace)
        await self._requests.delete(name, context.actor)
        return self.listed(name.namespace)

    async def _table(
        self, context: RequestContext, namespace: str, tested: tuple[str, CredentialTest] | None = None
    ) -> Response:
        context.permit(Role.READ, namespace)
        page = await self._requests.list(wire.ListCredentials(namespace, CREDENTIALS_MAX))
        return self._pages.page(
            "credentials/list.html",
            context,
            title="Credentials",
            namespace=namespace,
            settings_path=settings_path(namespace),
            credentials=page.credentials,
            types=_TYPES,
            tested=tested,
            may_change=context.principal.may(Role.ADMIN, namespace),
        )

    async def stored(self, namespace: str, name: str) -> dict[str, str]:
        credential = wire.credential_answer(await self._requests.get(wire.CredentialId(namespace, name)))
        fields = {name: value for name, value in msgspec.to_builtins(credential).items() if isinstance(value, str)}
        return fields | {"hosts": "\n".join(credential.hosts), "version": str(credential.version)}

    def sent(self, form: Fields) -> dict[str, str]:
        """Those of its type alone."""
        kind = _type_of(form)
        fields = {name: form.get(name) for name in (*_COMMON, *_FIELDS[kind])}
        return {"namespace": form.exact("namespace"), "type": kind.value, **fields}

    async def put(self, context: RequestContext, fields: dict[str, str], expected: Body) -> None:
        """What is empty is not sent: a secret stays if none is given."""
        body: Body = {name: value for name, value in fields.items() if value and name != "version"}
        body |= {"hosts": fields["hosts"].split(), **expected}
        await self._requests.put(_reader.read(msgspec.json.encode(body)), context.actor)

    def errors(self, error: InvalidInput) -> dict[str, str]:
        return {each.path.partition("[")[0] or "name": each.reason for each in reversed(error.errors)}

    async def form(self, context: RequestContext, fields: dict[str, str], **more: Any) -> Response:
        """Without the secrets."""
        shown = {name: value for name, value in fields.items() if name not in _SECRETS}
        return await super().form(context, dict.fromkeys(_LABELS, "") | shown, **more)

    def values(self, fields: Mapping[str, str]) -> dict[str, Any]:
        kind = CredentialType(fields["type"])
        own = {"namespace": fields["namespace"], "kind": kind, "own": _FIELDS[kind]}
        return {**own, "types": _TYPES, "secrets": _SECRETS, "long": LONG}


def _type_of(fields: Fields) -> CredentialType:
    """The type that a form has; the first one without any."""
    sent = fields.get("type")
    return next((each for each in CredentialType if each == sent), CredentialType.BEARER)

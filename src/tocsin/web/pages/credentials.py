"""`/credentials`: the credentials of a namespace, their test, and the form that creates and changes one."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.credential import CREDENTIALS_MAX
from tocsin.model.credential_type import SECRET_OF, CredentialType
from tocsin.model.errors import InvalidInput, TooManyCredentials, VersionConflict
from tocsin.ports.credentials import CredentialTest
from tocsin.web.http import credentials as wire
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.admin.namespaces import settings_path
from tocsin.web.pages.context import Fields, RequestContext
from tocsin.web.pages.presentation import with_query
from tocsin.web.pages.site import Part, Site, route

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


class CredentialsPage(Part):
    """The table, the test, the form, and what changes a credential."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._requests = wire.CredentialRequests(site.service.credentials, site.rules, site.audit)

    @route("GET", "/credentials")
    async def table(self, context: RequestContext) -> Response:
        """The credentials of a namespace."""
        return await self._table(context, context.query.exact("namespace"))

    @route("POST", "/credentials/test")
    async def test(self, context: RequestContext) -> Response:
        """Tries a credential, and shows what happened above the table."""
        name = wire.TestCredential(context.form.exact("namespace"), context.form.exact("name"))
        context.permit(Role.ADMIN, name.namespace)
        return await self._table(context, name.namespace, (name.name, await self._requests.test(name)))

    @route("GET", "/credentials/new")
    async def new(self, context: RequestContext) -> Response:
        """The form for a new credential of a type."""
        namespace = context.query.exact("namespace")
        context.permit(Role.ADMIN, namespace)
        return self._form(context, {"namespace": namespace, "type": _type_of(context.query)}, edited=False)

    @route("POST", "/credentials/new")
    async def create(self, context: RequestContext) -> Response:
        """Creates a credential. One that exists is not replaced."""
        return await self._put(context, edited=False)

    @route("GET", "/credentials/edit")
    async def edit(self, context: RequestContext) -> Response:
        """The form of a credential, with a button that deletes it."""
        name = wire.CredentialId(context.query.exact("namespace"), context.query.exact("name"))
        context.permit(Role.ADMIN, name.namespace)
        credential = wire.credential_answer(await self._requests.get(name))
        fields = {name: value for name, value in msgspec.to_builtins(credential).items() if isinstance(value, str)}
        return self._form(context, fields | {"hosts": "\n".join(credential.hosts)}, edited=True)

    @route("POST", "/credentials/edit")
    async def replace(self, context: RequestContext) -> Response:
        """Replaces what a credential has; its secret stays if none is given."""
        return await self._put(context, edited=True)

    @route("POST", "/credentials/delete")
    async def delete(self, context: RequestContext) -> Response:
        """Deletes a credential."""
        name = wire.DeleteCredential(context.form.exact("namespace"), context.form.exact("name"))
        context.permit(Role.ADMIN, name.namespace)
        await self._requests.delete(name, context.actor)
        return RedirectResponse(with_query("/credentials", {"namespace": name.namespace}), 303)

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

    async def _put(self, context: RequestContext, *, edited: bool) -> Response:
        form = context.form
        namespace = form.exact("namespace")
        context.permit(Role.ADMIN, namespace)
        kind = _type_of(form)
        fields = {name: form.get(name) for name in (*_COMMON, *_FIELDS[kind])}
        shown = {"namespace": namespace, "type": kind.value, **fields}
        try:
            # A new one must not replace one that somebody else has just created.
            expected = {} if edited else {"expectedVersion": 0}
            sent = _reader.read(msgspec.json.encode(_body(shown) | expected))
            await self._requests.put(sent, context.actor)
        except InvalidInput as error:
            errors = {each.path.partition("[")[0] or "name": each.reason for each in reversed(error.errors)}
            return self._form(context, shown, edited=edited, errors=errors, status=400)
        except VersionConflict:
            errors = {"name": "has a credential already: edit that one"}
            return self._form(context, shown, edited=edited, errors=errors, status=409)
        except TooManyCredentials as error:
            return self._form(context, shown, edited=edited, errors={"name": str(error)}, status=409)
        return RedirectResponse(with_query("/credentials", {"namespace": namespace}), 303)

    def _form(
        self,
        context: RequestContext,
        fields: dict[str, str],
        *,
        edited: bool,
        errors: dict[str, str] | None = None,
        status: int = 200,
    ) -> Response:
        errors, kind = errors or {}, CredentialType(fields["type"])
        return self._pages.page(
            "credentials/form.html",
            context,
            status,
            title="Edit credential" if edited else "New credential",
            form=dict.fromkeys(_LABELS, "") | {name: fields[name] for name in fields if name not in _SECRETS},
            namespace=fields["namespace"],
            edited=edited,
            types=_TYPES,
            kind=kind,
            own=_FIELDS[kind],
            secrets=_SECRETS,
            long=LONG,
            errors=errors,
            labels=_LABELS,
            first_invalid=next((each for each in _LABELS if each in errors), ""),
        )


def _type_of(fields: Fields) -> CredentialType:
    """The type that a form has; the first one without any."""
    sent = fields.get("type")
    return next((each for each in CredentialType if each == sent), CredentialType.BEARER)


def _body(fields: dict[str, str]) -> dict[str, Any]:
    """The request to the API that the fields stand for; what is empty is not sent."""
    body: dict[str, Any] = {name: value for name, value in fields.items() if value}
    return body | {"hosts": fields["hosts"].split()}

"""The operations on credentials."""

from __future__ import annotations

from functools import partial

from tocsin.model.access import Role
from tocsin.model.errors import NotAnIssuer, StoreError, Unavailable
from tocsin.model.validation import InputRules
from tocsin.ports.audit import AuditLog
from tocsin.ports.credentials import PublishedKeys
from tocsin.timers.credentials import StoredCredentials
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest
from tocsin.web.http import credentials as wire
from tocsin.web.http.repeated import UNCHANGED

#: How long receivers may keep the keys: each is published a day before it signs.
_KEPT = [(b"cache-control", b"public, max-age=3600")]

_open = partial(Operation, method="GET", any_query=True)
_change = partial(Operation, role=Role.ADMIN, reach=Reach.NAMESPACE)
_read = partial(Operation, role=Role.READ, reach=Reach.NAMESPACE)


class CredentialHandlers:
    """Handles put, get, list, delete and test."""

    def __init__(self, credentials: StoredCredentials, rules: InputRules, audit: AuditLog) -> None:
        self._requests = wire.CredentialRequests(credentials, rules, audit)

    @_change("putCredential", "/api/v1/credentials/put")
    async def put(self, request: ApiRequest, sent: wire.PutCredential) -> wire.Credential:
        """Creates the credential, or replaces all that it has; its secret stays if none is sent. From the response on, every
        node sends it as it is now with the attempts of all timers, schedules and hooks that name it; none of these is
        touched. Attempts under way go on. A dry run writes nothing in any case: the response shows the credential as it
        would be."""
        credential, changed = await self._requests.put(sent, request.actor)
        if not changed:
            request.answer_headers = [UNCHANGED]
        return wire.credential_answer(credential)

    @_read("getCredential", "/api/v1/credentials/get")
    async def get(self, request: ApiRequest, sent: wire.CredentialId) -> wire.Credential:
        """The credential without its secret."""
        return wire.credential_answer(await self._requests.get(sent))

    @_read("listCredentials", "/api/v1/credentials/list")
    async def list(self, request: ApiRequest, sent: wire.ListCredentials) -> wire.CredentialPage:
        """The credentials of a namespace by name, without their secrets. Paginated: send nextCursor back as cursor until a
        page has none."""
        return await self._requests.list(sent)

    @_change("testCredential", "/api/v1/credentials/test")
    async def test(self, request: ApiRequest, sent: wire.TestCredential) -> wire.TestedCredential:
        """Tries the credential: fetches or signs the token that it needs, and opens a connection to each of its hosts,
        without a request; with a url, sends HEAD there instead. The response states what happened, and has no secret."""
        return wire.tested_answer(await self._requests.test(sent))

    @_change("deleteCredential", "/api/v1/credentials/delete", status=204)
    async def delete(self, request: ApiRequest, sent: wire.DeleteCredential) -> None:
        """Removes the credential. Due timers that name it wait, without an attempt, until there is one of this name again."""
        await self._requests.delete(sent, request.actor)


class SigningKeyHandlers:
    """Publishes the keys by which receivers verify the JWTs of credentials; `keys` None: there are none."""

    def __init__(self, keys: PublishedKeys | None) -> None:
        self._keys = keys

    @_open("signingKeys", "/.well-known/jwks.json")
    async def keys(self, request: ApiRequest) -> wire.SigningKeySet:
        """The public keys of the JWTs that credentials of type jwt send (RFC 7517): those that sign now, did within the past
        day, or will from tomorrow on. Empty before the first such credential."""
        found = []
        if self._keys is not None:
            try:
                found = await self._keys.published()
            except (StoreError, TimeoutError) as error:
                raise Unavailable(f"the store is not available, try again: {error}") from error
        request.answer_headers = [*_KEPT]
        return wire.SigningKeySet([wire.SigningKey(**each) for each in found])

    @_open("openidConfiguration", "/.well-known/openid-configuration")
    async def discovery(self, request: ApiRequest) -> wire.OpenIdConfiguration:
        """Where the keys are (OpenID Connect Discovery 1.0), for receivers that trust this service's JWTs by its URL. Without
        the setting public_url there is no such document."""
        if self._keys is None:
            raise NotAnIssuer("this server signs no JWTs: public_url is not set, or what signs them is not installed")
        request.answer_headers = [*_KEPT]
        return wire.OpenIdConfiguration(self._keys.issuer, f"{self._keys.issuer}/.well-known/jwks.json")

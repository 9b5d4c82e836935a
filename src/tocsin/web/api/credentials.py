"""The operations on credentials."""

from __future__ import annotations

from functools import partial

from tocsin.model.access import Role
from tocsin.model.validation import InputRules
from tocsin.ports.audit import AuditLog
from tocsin.timers.credentials import StoredCredentials
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest
from tocsin.web.http import credentials as wire

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
        touched. Attempts under way go on."""
        return wire.credential_answer(await self._requests.put(sent, request.actor))

    @_read("getCredential", "/api/v1/credentials/get")
    async def get(self, request: ApiRequest, sent: wire.CredentialId) -> wire.Credential:
        """The credential without its secret."""
        return wire.credential_answer(await self._requests.get(sent))

    @_read("listCredentials", "/api/v1/credentials/list")
    async def list(self, request: ApiRequest, sent: wire.ListCredentials) -> wire.CredentialPage:
        """The credentials of a namespace by name, without their secrets. Paginated: send nextCursor back as cursor until a
        page has none."""
        return await self._requests.list(sent)

    @_change("deleteCredential", "/api/v1/credentials/delete", status=204)
    async def delete(self, request: ApiRequest, sent: wire.DeleteCredential) -> None:
        """Removes the credential. Due timers that name it wait, without an attempt, until there is one of this name again."""
        await self._requests.delete(sent, request.actor)

    @_change("testCredential", "/api/v1/credentials/test")
    async def test(self, request: ApiRequest, sent: wire.TestCredential) -> wire.TestedCredential:
        """Tries the credential: fetches or signs the token that it needs, and opens a connection to each of its hosts,
        without a request; with a url, sends HEAD there instead. The response states what happened, and has no secret."""
        return wire.tested_answer(await self._requests.test(sent))

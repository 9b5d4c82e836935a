"""The operations on namespaces, API keys and the audit trail."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from tocsin.keys import ApiKeys, make
from tocsin.model.access import ApiKey, Role
from tocsin.model.audit import AuditAction, Detail
from tocsin.model.validation import InputRules
from tocsin.ports.audit import AuditLog
from tocsin.timers.jobs import Jobs
from tocsin.timers.service import TimerService
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest
from tocsin.web.http import administration as wire
from tocsin.web.http.access import require_grant
from tocsin.web.http.administration import audit_page, audit_query, created_key, key_request, keys_answer, read_audit
from tocsin.web.http.convert import RequestParser
from tocsin.web.http.instants import optional_instant
from tocsin.web.http.jobs import JobAnswer, job_view
from tocsin.web.http.namespace_deletion import DeleteNamespace, DeletionRequests
from tocsin.web.http.namespaces import NamespaceRequests, namespace_answer
from tocsin.web.http.repeated import UNCHANGED, refuse_key

_of_keys = partial(Operation, role=Role.ADMIN, reach=Reach.VISIBLE, key_required=True)


class NamespaceHandlers:
    """Handles create, get, list, update, delete, and rotation of the secret."""

    def __init__(self, service: TimerService, parser: RequestParser, audit: AuditLog, jobs: Jobs) -> None:
        self._service = service
        self._requests = NamespaceRequests(service, parser, audit)
        self._deletions = DeletionRequests(service, jobs, parser.rules, audit)

    @Operation("createNamespace", "/api/v1/namespaces/create", Role.ADMIN, Reach.SERVICE)
    async def create(self, request: ApiRequest, sent: wire.CreateNamespace) -> wire.Namespace:
        """numShards is permanent; everything else can be changed later."""
        return namespace_answer(await self._requests.create(sent, request.actor), request.now_us)

    @Operation("getNamespace", "/api/v1/namespaces/get", Role.READ, Reach.NAMESPACE)
    async def get(self, request: ApiRequest, sent: wire.GetNamespace) -> wire.Namespace:
        """The namespace as namespaces/list shows it."""
        return namespace_answer(await self._service.namespaces.stored(sent.name), request.now_us)

    @Operation("listNamespaces", "/api/v1/namespaces/list", Role.READ, Reach.VISIBLE, body_optional=True)
    async def list(self, request: ApiRequest, sent: wire.ListNamespaces) -> wire.NamespaceList:
        """Lists the namespaces that the key has access to."""
        visible = [
            namespace_answer(namespace, request.now_us)
            for namespace in await self._service.namespaces.all()
            if request.key is None or request.key.allows(Role.READ, namespace.name)
        ]
        return wire.NamespaceList(visible)

    @Operation("updateNamespace", "/api/v1/namespaces/update", Role.ADMIN, Reach.SERVICE)
    async def update(self, request: ApiRequest, sent: wire.UpdateNamespace) -> wire.Namespace:
        """Changes only the given fields; if they change nothing, nothing is written. Timers of a paused namespace wait, and
        fire when it is resumed. The response is sent when every node has applied the change, which takes seconds if a node
        can't be reached. A dry run writes nothing in any case: the response shows the namespace as it would be."""
        namespace, changed = await self._requests.update(sent, request.actor)
        if not changed:
            request.answer_headers = [UNCHANGED]
        return namespace_answer(namespace, request.now_us)

    @Operation("deleteNamespace", "/api/v1/namespaces/delete", Role.ADMIN, Reach.SERVICE, status=202)
    async def delete(self, request: ApiRequest, sent: DeleteNamespace) -> JobAnswer:
        """A job deletes the namespace with all that is in it: timers, schedules and notifications, their history, failures
        and idempotency keys. API keys that are limited to this namespace alone are revoked; others lose it. From the response
        on, nothing of the namespace begins to fire, and creates and changes in it are refused with NAMESPACE_DELETING; reads
        work until the job has ended. Then the name can be used again. If the job is canceled or fails, the namespace goes on
        with what is left. While a job deletes the namespace, another request answers that job."""
        refuse_key(request.headers)
        return JobAnswer(job_view(await self._deletions.delete(sent, request.actor, request.now_us)))

    @Operation("rotateNamespaceSecret", "/api/v1/namespaces/rotateSecret", Role.ADMIN, Reach.NAMESPACE)
    async def rotate(self, request: ApiRequest, sent: wire.RotateSecret) -> wire.RotatedSecret:
        """The new secret signs immediately. The previous one keeps signing during the grace period, so that receivers can be
        updated: `webhook-signature` then has two signatures, the newest first. Only this response shows the secret; send your
        own secret to make the request safe to repeat. A namespace without a secret gets its first. The response is sent when
        every node has applied the change."""
        refuse_key(request.headers)
        namespace, rotation = await self._requests.rotate(sent, request.actor)
        request.forbid_storing()
        return wire.RotatedSecret(
            name=sent.name,
            secret=rotation.secret,
            previous_until=optional_instant(namespace.signing.previous_until(request.now_us)),
        )


class KeyHandlers:
    """Handles create, list and revoke; `operations` are the names of all to which a key can be limited. All of them require a
    key, even on a server that requires none otherwise: a key created anonymously would remain valid after the server starts
    to require keys."""

    def __init__(self, keys: ApiKeys, audit: AuditLog, operations: Collection[str]) -> None:
        self._keys = keys
        self._operations = operations
        self._audit = audit

    @_of_keys("createKey", "/api/v1/keys/create")
    async def create(self, request: ApiRequest, sent: wire.CreateKey) -> wire.CreatedKey:
        """Only this response shows the key. It can't exceed the key of the request: no other namespaces, tenants, operations
        or sources, and no later expiry. The request always requires a key, even if the server requires none otherwise;
        `tocsin keys create` creates the first one. Other nodes accept the new key within `keys_refresh`."""
        caller = _caller(request)
        refuse_key(request.headers)
        key, secret = make(key_request(sent), request.now_us, self._operations)
        require_grant(caller, key)
        await self._keys.add(key, partial(self._record, request))
        request.forbid_storing()
        return created_key(key, secret)

    @_of_keys("listKeys", "/api/v1/keys/list", body_optional=True)
    async def list(self, request: ApiRequest, sent: wire.ListKeys) -> wire.KeyList:
        """Lists the keys within the scope of the request's key."""
        return keys_answer(await self._keys.seen_by(_caller(request)), await self._keys.uses())

    @_of_keys("revokeKey", "/api/v1/keys/revoke", status=204)
    async def revoke(self, request: ApiRequest, sent: wire.RevokeKey) -> None:
        """Revokes one of the keys that `keys/list` shows. The responding node refuses it immediately, other nodes within
        `keys_refresh`. Its sign-ins end as well."""
        await self._keys.revoke(sent.key_id, _caller(request), partial(self._record, request))

    async def _record(self, request: ApiRequest, action: AuditAction, key_id: str, details: dict[str, Detail]) -> None:
        await self._audit.write(action, request.actor, key_id, details)


def _caller(request: ApiRequest) -> ApiKey:
    assert request.key is not None
    return request.key


class AuditHandlers:
    """Handles list."""

    def __init__(self, audit: AuditLog, rules: InputRules) -> None:
        self._audit = audit
        self._rules = rules

    @Operation("listAudit", "/api/v1/audit/list", Role.ADMIN, Reach.SERVICE, body_optional=True)
    async def list(self, request: ApiRequest, sent: wire.ListAudit) -> wire.AuditPage:
        """Sign-ins, sign-outs, and changes of all but timers, schedules and service calls, of which only changes over MCP are
        listed; newest first: which key, when, from which address, on which node. Entries are kept for the setting
        `audit_retention`. With a filter a page may be short, even empty, and still have a nextCursor: the search stops after
        many entries that don't match."""
        return audit_page(await read_audit(self._audit, audit_query(sent, self._rules)))

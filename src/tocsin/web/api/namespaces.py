"""The operations on namespaces."""

from __future__ import annotations

from functools import partial

from msgspec import UNSET

from tocsin.model.access import Role
from tocsin.model.audit import AuditAction
from tocsin.model.namespace import Answers
from tocsin.ports.audit import AuditLog
from tocsin.timers.service import TimerService
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest
from tocsin.web.http import wire
from tocsin.web.http.audit import namespace_details, rotation_details
from tocsin.web.http.convert import RequestParser, namespace_answer
from tocsin.web.http.instants import optional_instant

_operation = partial(Operation, tag="Namespaces")


class NamespaceHandlers:
    """Handles create, list, update, and rotation of the secret."""

    def __init__(self, service: TimerService, parser: RequestParser, audit: AuditLog) -> None:
        self._audit = audit
        self._service = service
        self._parser = parser

    @_operation(
        "createNamespace",
        "/api/v1/namespaces/create",
        "Create a namespace",
        Role.ADMIN,
        Reach.SERVICE,
        errors=("NAMESPACE_EXISTS", "SHARD_UNAVAILABLE"),
        example={"name": "orders", "history": "all", "retention": "3d"},
    )
    async def create(self, request: ApiRequest, sent: wire.CreateNamespace) -> wire.Namespace:
        """numShards is permanent; everything else can be changed later."""
        settings = self._parser.namespace_settings(sent)
        namespace = await self._service.namespaces.create(
            sent.name,
            num_shards=None if sent.num_shards is UNSET else sent.num_shards,
            history=None if sent.history is UNSET else sent.history,
            retention_us=settings.retention_us,
            secret=None if sent.secret is UNSET else sent.secret,
            answers=Answers.STANDARD if sent.answers is UNSET else sent.answers,
            retry=None if settings.retry is UNSET else settings.retry,
        )
        await self._audit.write(AuditAction.NAMESPACE_CREATED, request.actor, sent.name, namespace_details(sent))
        return namespace_answer(namespace, request.now_us)

    @_operation(
        "listNamespaces",
        "/api/v1/namespaces/list",
        "List namespaces",
        Role.READ,
        Reach.VISIBLE,
        body_optional=True,
        errors=("SHARD_UNAVAILABLE",),
    )
    async def list(self, request: ApiRequest, sent: wire.ListNamespaces) -> wire.NamespaceList:
        """Lists the namespaces that the key has access to."""
        visible = [
            namespace_answer(namespace, request.now_us)
            for namespace in await self._service.namespaces.all()
            if request.key is None or request.key.allows(Role.READ, namespace.name)
        ]
        return wire.NamespaceList(visible)

    @_operation(
        "updateNamespace",
        "/api/v1/namespaces/update",
        "Change a namespace",
        Role.ADMIN,
        Reach.SERVICE,
        errors=("NAMESPACE_NOT_FOUND", "CONFLICT", "SHARD_UNAVAILABLE"),
        example={"name": "orders", "paused": True},
    )
    async def update(self, request: ApiRequest, sent: wire.UpdateNamespace) -> wire.Namespace:
        """Changes only the given fields. Timers of a paused namespace wait, and fire when it is resumed. The response is sent
        when every node has applied the change, which takes seconds if a node can't be reached."""
        settings = self._parser.namespace_settings(sent)
        namespace = await self._service.namespaces.update(
            sent.name,
            history=None if sent.history is UNSET else sent.history,
            retention_us=settings.retention_us,
            secret=None if sent.secret is UNSET else sent.secret,
            remove_secret=sent.secret is None,
            paused=None if sent.paused is UNSET else sent.paused,
            answers=None if sent.answers is UNSET else sent.answers,
            retry=settings.retry,
        )
        await self._audit.write(AuditAction.NAMESPACE_CHANGED, request.actor, sent.name, namespace_details(sent))
        return namespace_answer(namespace, request.now_us)

    @_operation(
        "rotateNamespaceSecret",
        "/api/v1/namespaces/rotateSecret",
        "Rotate a namespace's signing secret",
        Role.ADMIN,
        Reach.NAMESPACE,
        errors=("NAMESPACE_NOT_FOUND", "ROTATION_PENDING", "CONFLICT", "SHARD_UNAVAILABLE"),
        example={"name": "orders", "grace": "24h"},
    )
    async def rotate(self, request: ApiRequest, sent: wire.RotateSecret) -> wire.RotatedSecret:
        """The new secret signs immediately. The previous one keeps signing during the grace period, so that receivers can be
        updated: `webhook-signature` then has two signatures, the newest first. Only this response shows the secret; send your
        own secret to make the request safe to repeat. A namespace without a secret gets its first. The response is sent when
        every node has applied the change."""
        request.permit(Role.ADMIN, sent.name)
        rotation = self._parser.namespace_rotation(sent)
        namespace = await self._service.namespaces.rotate_secret(
            sent.name, rotation.secret, rotation.grace_us, force=rotation.force
        )
        await self._audit.write(
            AuditAction.SECRET_ROTATED, request.actor, sent.name, rotation_details("namespace", rotation)
        )
        request.forbid_storing()
        return wire.RotatedSecret(
            name=sent.name,
            secret=rotation.secret,
            previous_until=optional_instant(namespace.signing.previous_until(request.now_us)),
        )

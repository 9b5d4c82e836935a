"""Handlers of the operations on namespaces."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from tocsin.model.access import Role
from tocsin.model.audit import AuditAction
from tocsin.model.namespace import Answers
from tocsin.ports.audit import AuditLog
from tocsin.timers.service import TimerService
from tocsin.web.api.request import ApiRequest, CustomResponse, Handler, shown_once
from tocsin.web.http import wire
from tocsin.web.http.audit import namespace_details, rotation_details
from tocsin.web.http.convert import RequestParser, namespace_answer
from tocsin.web.http.instants import format_instant
from tocsin.web.http.reading import JsonReader


class NamespaceHandlers:
    """Handles create, list, update, and rotation of the secret."""

    def __init__(self, service: TimerService, parser: RequestParser, audit: AuditLog) -> None:
        self._audit = audit
        self._service = service
        self._parser = parser
        self._encode = msgspec.json.Encoder().encode
        self._create = JsonReader(wire.CreateNamespace)
        self._list = JsonReader(wire.ListNamespaces)
        self._update = JsonReader(wire.UpdateNamespace)
        self._rotate = JsonReader(wire.RotateSecret)

    def by_name(self) -> dict[str, Handler]:
        """The handlers by operation name."""
        return {
            "createNamespace": self.create,
            "listNamespaces": self.list,
            "updateNamespace": self.update,
            "rotateNamespaceSecret": self.rotate,
        }

    async def create(self, request: ApiRequest) -> bytes:
        """Creates a namespace."""
        sent = self._create.read(request.body)
        settings = self._parser.namespace_settings(sent)
        namespace = await self._service.create_namespace(
            sent.name,
            num_shards=None if sent.num_shards is UNSET else sent.num_shards,
            history=None if sent.history is UNSET else sent.history,
            retention_us=settings.retention_us,
            secret=None if sent.secret is UNSET else sent.secret,
            answers=Answers.STANDARD if sent.answers is UNSET else sent.answers,
            retry=None if settings.retry is UNSET else settings.retry,
        )
        await self._audit.write(AuditAction.NAMESPACE_CREATED, request.actor, sent.name, namespace_details(sent))
        return self._encode(namespace_answer(namespace, request.now_us))

    async def list(self, request: ApiRequest) -> bytes:
        """Returns the namespaces that the key may read."""
        if request.body:
            self._list.read(request.body)
        visible = [
            namespace_answer(namespace, request.now_us)
            for namespace in await self._service.namespaces()
            if request.key is None or request.key.allows(Role.READ, namespace.name)
        ]
        return self._encode(wire.NamespaceList(visible))

    async def update(self, request: ApiRequest) -> bytes:
        """Changes a namespace's settings."""
        sent = self._update.read(request.body)
        settings = self._parser.namespace_settings(sent)
        namespace = await self._service.update_namespace(
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
        return self._encode(namespace_answer(namespace, request.now_us))

    async def rotate(self, request: ApiRequest) -> CustomResponse:
        """Rotates the signing secret."""
        sent = self._rotate.read(request.body)
        request.permit(Role.ADMIN, sent.name)
        rotation = self._parser.namespace_rotation(sent)
        namespace = await self._service.rotate_secret(
            sent.name, rotation.secret, rotation.grace_us, force=rotation.force
        )
        await self._audit.write(
            AuditAction.SECRET_ROTATED, request.actor, sent.name, rotation_details("namespace", rotation)
        )
        previous_until = namespace.signing.previous_until(request.now_us)
        answer = wire.RotatedSecret(
            name=sent.name,
            secret=rotation.secret,
            previous_until=UNSET if previous_until is None else format_instant(previous_until),
        )
        return shown_once(self._encode(answer))

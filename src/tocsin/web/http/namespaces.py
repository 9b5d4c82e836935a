"""What requests about namespaces do, whether they come from the API or from the pages, with their entries in the audit
trail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from tocsin.model.audit import AuditAction, Detail
from tocsin.model.batch import CallbackBatch
from tocsin.model.errors import FieldError, InvalidInput
from tocsin.model.flow import FlowLimits
from tocsin.model.hooks import Event, Hook, field_of
from tocsin.model.instants import format_duration, format_instant
from tocsin.model.namespace import Answers, Namespace, policy_in_force
from tocsin.model.quota import Quotas
from tocsin.model.retry import RetryPolicy
from tocsin.ports.audit import Actor, AuditLog
from tocsin.timers.credentials import uses_of_hooks
from tocsin.timers.service import TimerService
from tocsin.web.http import administration as wire
from tocsin.web.http.administration import Rotation, rotation_details
from tocsin.web.http.callback_batches import batch_answer, batch_detail, read_batch
from tocsin.web.http.constraints import bad_fields, below
from tocsin.web.http.convert import RequestParser, retry_answer, set_hooks
from tocsin.web.http.flows import limits_answer, limits_detail, read_limits
from tocsin.web.http.instants import optional_instant, read_duration
from tocsin.web.http.optional import present

NO_CREDENTIAL_YET = "names a credential of a namespace that is only being created; create both, then set the hook"


class NamespaceSettings(NamedTuple):
    """The retention, None if it is absent; the policy: UNSET if it is absent, None to remove the namespace's; the hooks and
    the quotas that are set or removed, None to remove all quotas; and the limits, the batch and the sink, like the policy."""

    retention_us: int | None
    retry: RetryPolicy | UnsetType | None
    hooks: Mapping[str, Hook | None]
    quotas: Mapping[str, int | None] | None
    limits: FlowLimits | UnsetType | None
    callback_batch: CallbackBatch | UnsetType | None
    event_sink: str | UnsetType | None


class NamespaceRequests:
    """Every method raises InvalidInput with all bad fields of the request, and the errors of `TimerService.namespaces`."""

    def __init__(self, service: TimerService, parser: RequestParser, audit: AuditLog) -> None:
        self._service = service
        self._parser = parser
        self._audit = audit

    async def create(self, sent: wire.CreateNamespace, actor: Actor) -> Namespace:
        """Creates a namespace."""
        converted = settings_in(sent, sent.name, self._parser)
        if uses := uses_of_hooks(converted.hooks):
            # A new namespace has none.
            raise InvalidInput(*(FieldError(field, NO_CREDENTIAL_YET) for field, _, _ in uses))
        namespace = await self._service.namespaces.create(
            sent.name,
            num_shards=None if sent.num_shards is UNSET else sent.num_shards,
            history=None if sent.history is UNSET else sent.history,
            retention_us=converted.retention_us,
            secret=None if sent.secret is UNSET else sent.secret,
            answers=Answers.STANDARD if sent.answers is UNSET else sent.answers,
            retry=None if converted.retry is UNSET else converted.retry,
            hooks=converted.hooks,
            limits=converted.limits or None,
            callback_batch=converted.callback_batch or None,
            event_sink=converted.event_sink or None,
            quotas=converted.quotas,
            managed_by=sent.managed_by or None,
        )
        await self._audit.write(AuditAction.NAMESPACE_CREATED, actor, sent.name, _details(sent))
        return namespace

    async def update(self, sent: wire.UpdateNamespace, actor: Actor) -> tuple[Namespace, bool]:
        """Changes the fields that are sent. The namespace, and whether anything has changed."""
        converted = settings_in(sent, sent.name, self._parser)
        await self._service.credentials.check(sent.name, uses_of_hooks(converted.hooks))
        namespace, changed = await self._service.namespaces.update(
            sent.name,
            history=None if sent.history is UNSET else sent.history,
            retention_us=converted.retention_us,
            secret=None if sent.secret is UNSET else sent.secret,
            remove_secret=sent.secret is None,
            paused=None if sent.paused is UNSET else sent.paused,
            answers=None if sent.answers is UNSET else sent.answers,
            retry=converted.retry,
            hooks=converted.hooks,
            limits=converted.limits,
            callback_batch=converted.callback_batch,
            event_sink=converted.event_sink,
            quotas=converted.quotas,
            managed_by=sent.managed_by,
            expected_version=None if sent.expected_version is UNSET else sent.expected_version,
            dry_run=sent.dry_run is True,
        )
        if changed and sent.dry_run is not True:
            await self._audit.write(AuditAction.NAMESPACE_CHANGED, actor, sent.name, _details(sent))
        return namespace, changed

    async def rotate(self, sent: wire.RotateSecret, actor: Actor) -> tuple[Namespace, Rotation]:
        """Rotates the secret; generates one if the request has none."""
        rotation = self._parser.rotation(sent, [])
        namespace = await self._service.namespaces.rotate_secret(
            sent.name, rotation.secret, rotation.grace_us, force=rotation.force
        )
        await self._audit.write(AuditAction.SECRET_ROTATED, actor, sent.name, rotation_details("namespace", rotation))
        return namespace, rotation


def settings_in(
    sent: wire.NamespaceFields | wire.UpdateNamespace, name: str, parser: RequestParser
) -> NamespaceSettings:
    """The settings that a request about the namespace of this name has. Raises InvalidInput with all bad fields."""
    rules = parser.rules
    errors = bad_fields(sent, rules)
    retention_us = read_duration("retention", sent.retention, errors)
    if retention_us is not None and (reason := rules.retention(retention_us)):
        errors.append(FieldError("retention", reason))
    retry, hooks = parser.policy(sent.retry_policy, errors), parser.hooks(sent, errors)
    limits, batch = read_limits(sent.limits, "limits", rules, errors), read_batch(sent.callback_batch, rules, errors)
    if isinstance(sent.quotas, wire.Quotas):
        errors += below("quotas", bad_fields(sent.quotas, rules))
    sink = sent.event_sink
    if isinstance(sink, str) and (reason := rules.event_sink(sink, name)):
        errors.append(FieldError("eventSink", reason))
    if errors:
        raise InvalidInput(*errors)
    changed_hooks = {} if hooks is UNSET else hooks
    return NamespaceSettings(retention_us, retry, changed_hooks, _quotas(sent.quotas), limits, batch, sink)


def _quotas(sent: wire.Quotas | UnsetType | None) -> Mapping[str, int | None] | None:
    """The changes of quotas by field; None to remove all."""
    if sent is None:
        return None
    return {} if sent is UNSET else present(msgspec.structs.asdict(sent))


def _details(sent: wire.CreateNamespace | wire.UpdateNamespace) -> dict[str, Detail]:
    """The namespace settings that a request set; of a secret, only that it was set or removed."""
    given = {
        "numShards": sent.num_shards if isinstance(sent, wire.CreateNamespace) else UNSET,
        "paused": UNSET if isinstance(sent, wire.CreateNamespace) else sent.paused,
        "history": sent.history,
        "retention": sent.retention,
        "answers": sent.answers,
        "retryPolicy": _whether_set(sent.retry_policy),
        "secret": _whether_set(sent.secret),
        "limits": limits_detail(sent.limits),
        "callbackBatch": batch_detail(sent.callback_batch),
        "eventSink": "removed" if sent.event_sink is None else sent.event_sink,
        "quotas": UNSET if sent.quotas is UNSET else _words(sent.quotas),
        "managedBy": "removed" if sent.managed_by is None else sent.managed_by,
        **{field_of(event): _whether_set(getattr(sent, f"on_{event}")) for event in Event},
    }
    return present(given)


def _whether_set(value: object) -> str | UnsetType:
    return UNSET if value is UNSET else "removed" if value is None else "set"


def _words(quotas: wire.Quotas | None) -> str:
    """The quotas as sent, for the audit trail."""
    if quotas is None:
        return "removed"
    sent = msgspec.to_builtins(quotas)
    return ", ".join(f"{name}: {'removed' if value is None else value}" for name, value in sent.items())


def namespace_answer(namespace: Namespace, now_us: int) -> wire.Namespace:
    """The namespace as clients see it: without its secrets."""
    answer = wire.Namespace(
        name=namespace.name,
        num_shards=namespace.num_shards,
        history=namespace.history,
        retention=format_duration(namespace.retention_us),
        paused=namespace.paused,
        signed=namespace.secret is not None,
        answers=namespace.answers,
        retry_policy=retry_answer(policy_in_force(None, namespace)),
        created_at=format_instant(namespace.created_at),
        updated_at=format_instant(namespace.updated_at),
        version=namespace.version,
        previous_secret_until=optional_instant(namespace.signing.previous_until(now_us)),
        damaged=UNSET if namespace.damaged is None else namespace.damaged,
        deleting=UNSET if namespace.deleting is None else namespace.deleting,
        limits=limits_answer(namespace.limits),
        quotas=UNSET if namespace.quotas is None else _quotas_answer(namespace.quotas),
        managed_by=namespace.managed_by or UNSET,
        callback_batch=batch_answer(namespace.callback_batch),
        event_sink=namespace.event_sink or UNSET,
    )
    set_hooks(answer, namespace.hooks)
    return answer


def _quotas_answer(quotas: Quotas) -> wire.QuotasAnswer:
    given = msgspec.structs.asdict(quotas)
    return wire.QuotasAnswer(**{name: value for name, value in given.items() if value is not None})

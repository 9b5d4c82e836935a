"""A fake agent in memory: commands are answered immediately, and nothing is executed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.plain import check_request
from tocsin.model.ids import Uuid7Source
from tocsin.model.secrets import SigningSecrets
from tocsin.model.validation import InputLimits, InputRules
from tocsin.ports.agent_calls import CallFailure, CallFailurePlace, Tenants
from tocsin.ports.bus import Envelope
from tocsin.service_calls.api.service_calls import ServiceCalls
from tocsin.service_calls.background import AgentContext
from tocsin.service_calls.limits import AgentLimits
from tocsin.service_calls.messages import (
    CallKey,
    CallStatus,
    CommandAccepted,
    CommandRefused,
    DeleteServiceCall,
    DismissFailure,
    Message,
    Registry,
    RetryServiceCall,
    SubmitServiceCall,
    TagServiceCall,
    UntagServiceCall,
)
from tocsin.service_calls.ports import CallFilter, CallRecord, ExecutionRecord, SearchResult, TraceEntry


def now_us() -> int:
    return time.time_ns() // 1_000


@dataclass
class Kept:
    """A call with the fields that its record lacks."""

    record: CallRecord
    fingerprint: str
    idempotency_key: str | None


class Secrets(dict[str, SigningSecrets]):
    """TenantSecrets in memory."""

    async def change(self, tenant_id: str, change: Callable[[SigningSecrets], SigningSecrets]) -> SigningSecrets:
        self[tenant_id] = change(self.get(tenant_id, SigningSecrets()))
        return self[tenant_id]


@dataclass
class FakeAgent:
    """Implements `Bus.request` and `CallQueries`. While set, `fault` is raised by every request and read, and `reply` answers
    every command; `commands` has the received commands."""

    limits: AgentLimits = field(default_factory=AgentLimits)
    check: Callable[..., Sequence[tuple[str, str]]] = check_request
    check_url: Callable[[str], str | None] = lambda url: None
    check_due: Callable[[int, int], str | None] = lambda due_us, now_us: None

    def __post_init__(self) -> None:
        self.new_id = Uuid7Source(now_us)
        self.registry = Registry(self.new_id, now_us)
        self.secrets = Secrets()
        self.clear()

    def clear(self) -> None:
        self.secrets.clear()
        self.calls: dict[CallKey, Kept] = {}
        self.runs: dict[CallKey, list[ExecutionRecord]] = {}
        self.entries: dict[CallKey, list[TraceEntry]] = {}
        self.commands: list[tuple[Envelope, Message]] = []
        self.fault: Exception | None = None
        self.reply: Message | None = None
        #: The failures that are listed.
        self.failed: list[CallFailure] = []

    def now_us(self) -> int:
        return now_us()

    def boottime_us(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000

    def service_calls(self) -> ServiceCalls:
        """The object that the HTTP layer uses."""
        bus: Any = self
        rules = InputRules(InputLimits(), EgressPolicy(allow_private=True).check_url)
        rules.url = self.check_url  # type: ignore[method-assign]
        rules.instant = self.check_due  # type: ignore[method-assign]
        return ServiceCalls(
            bus,
            self,
            self.secrets,
            AgentContext(self.registry, self, self.limits, lambda event: None),
            self.new_id,
            rules,
            self.check,
        )

    def change(self, key: CallKey, **fields: Any) -> None:
        """Changes fields of a call, as the other modules would."""
        kept = self.calls[key]
        kept.record = kept.record._replace(**fields)

    # -- Bus

    async def request(self, envelope: Envelope, timeout_us: int) -> Envelope:
        if self.fault is not None:
            raise self.fault
        message = self.registry.open(envelope)
        self.commands.append((envelope, message))
        reply, correlation_id = self._answer(envelope, message)
        return self.registry.seal(
            self.reply or reply,
            tenant_id=envelope.tenant_id,
            correlation_id=correlation_id,
            causation_id=envelope.id,
        )

    def _answer(self, envelope: Envelope, message: Message) -> tuple[Message, str]:
        key = CallKey(envelope.tenant_id, message.service_call_id)
        if isinstance(message, SubmitServiceCall):
            return self._submit(key, envelope, message)
        kept = self.calls.get(key)
        if kept is None:
            return self._refuse(envelope, "SERVICE_CALL_NOT_FOUND")
        tags = set(kept.record.tags)
        if isinstance(message, TagServiceCall):
            tags.add(message.tag)
            if len(tags) > self.limits.tags_max:
                return self._refuse(envelope, "TOO_MANY_TAGS")
        elif isinstance(message, UntagServiceCall):
            tags.discard(message.tag)
        elif isinstance(message, RetryServiceCall):
            if kept.record.status != "Failed":
                return self._refuse(envelope, "SERVICE_CALL_NOT_FAILED")
            kept.record = kept.record._replace(status="Running")
        elif isinstance(message, DismissFailure):
            self.failed = [each for each in self.failed if each.service_call_id != key.service_call_id]
        else:
            assert isinstance(message, DeleteServiceCall)
            if kept.record.status not in ("Scheduled", "Retrying"):
                return self._refuse(envelope, "SERVICE_CALL_NOT_SCHEDULED")
            del self.calls[key]
        kept.record = kept.record._replace(tags=tuple(sorted(tags)))
        return CommandAccepted(key.service_call_id, kept.record.status), envelope.correlation_id

    def _submit(self, key: CallKey, envelope: Envelope, sent: SubmitServiceCall) -> tuple[Message, str]:
        present = self.calls.get(key) or next(
            (
                kept
                for (tenant_id, _), kept in self.calls.items()
                if tenant_id == key.tenant_id and sent.idempotency_key and kept.idempotency_key == sent.idempotency_key
            ),
            None,
        )
        if present is not None:
            if present.fingerprint != sent.fingerprint:
                return self._refuse(envelope, "IDEMPOTENCY_CONFLICT")
            record = present.record
            return CommandAccepted(record.service_call_id, record.status, created=False), record.correlation_id
        submitted_at = now_us()
        record = CallRecord(
            *key,
            name=sent.name,
            status="Scheduled",
            submitted_at=submitted_at,
            due_at=submitted_at if sent.due_at is None else sent.due_at,
            started_at=None,
            finished_at=None,
            request_spec=sent.request_spec,
            outcome=None,
            correlation_id=envelope.correlation_id,
            tags=tuple(sorted(sent.tags)),
            retry_policy=None if sent.retry_policy is None else sent.retry_policy.policy,
            hooks=sent.hooks,
        )
        self.calls[key] = Kept(record, sent.fingerprint, sent.idempotency_key)
        return CommandAccepted(key.service_call_id, "Scheduled"), envelope.correlation_id

    def _refuse(self, envelope: Envelope, code: str) -> tuple[Message, str]:
        return CommandRefused(envelope.aggregate_id, code, f"refused with {code}"), envelope.correlation_id

    # -- CallQueries

    async def find(self, key: CallKey) -> CallRecord | None:
        if self.fault is not None:
            raise self.fault
        kept = self.calls.get(key)
        return None if kept is None else kept.record

    async def find_many(self, keys: Sequence[CallKey]) -> list[CallRecord]:
        return [record for key in keys if (record := await self.find(key)) is not None]

    async def page(self, wanted: CallFilter) -> list[CallRecord]:
        if self.fault is not None:
            raise self.fault
        found = [kept.record for kept in self.calls.values() if _fits(kept.record, wanted)]
        found.sort(key=lambda record: (record.submitted_at, record.service_call_id), reverse=True)
        return found[: wanted.limit]

    async def search(self, wanted: CallFilter) -> SearchResult:
        return SearchResult(await self.page(wanted), None)

    async def counts(self, tenants: Tenants, most: int) -> Mapping[str, tuple[int, bool]]:
        found = await self.page(CallFilter(tenants, limit=most))
        return {status: (sum(each.status == status for each in found), False) for status in CallStatus}

    async def of_request(self, correlation_id: str, tenants: tuple[str, ...] | None, limit: int) -> list[CallRecord]:
        return await self.page(CallFilter(tenants, correlation_id=correlation_id, limit=limit))

    async def attempted_urls(self, most: int) -> list[str] | None:
        return [each.request_spec.url for each in await self.page(CallFilter(None, limit=most)) if each.attempts]

    async def causes(
        self, tenants: Tenants, since_us: int, before: CallFailurePlace | None, limit: int
    ) -> list[tuple[CallFailurePlace, str]]:
        if self.fault is not None:
            raise self.fault
        found = sorted(self.failed, key=lambda failure: failure.place, reverse=True)
        return [
            (each.place, each.failure)
            for each in found
            if (before is None or each.place < before)
            and each.failed_at >= since_us
            and (not isinstance(tenants, str) or each.tenant_id == tenants)
        ][:limit]

    async def failures(self, places: Sequence[CallFailurePlace]) -> list[CallFailure]:
        return [each for each in self.failed if each.place in places]

    async def executions(self, key: CallKey) -> list[ExecutionRecord]:
        return self.runs.get(key, [])

    async def trace(self, key: CallKey) -> list[TraceEntry]:
        return self.entries.get(key, [])


def _fits(record: CallRecord, wanted: CallFilter) -> bool:
    if wanted.before is not None and (record.submitted_at, record.service_call_id) >= tuple(wanted.before):
        return False
    return (
        (wanted.tenants is None or record.tenant_id in wanted.tenants)
        and (not wanted.statuses or record.status in wanted.statuses)
        and set(wanted.tags) <= set(record.tags)
        and wanted.name.lower() in record.name.lower()
        and wanted.correlation_id in ("", record.correlation_id)
        and (wanted.submitted_from is None or record.submitted_at >= wanted.submitted_from)
        and (wanted.submitted_to is None or record.submitted_at < wanted.submitted_to)
    )

"""The operations on failures."""

from __future__ import annotations

from functools import partial

from msgspec import UnsetType

from tocsin.model.access import Role
from tocsin.model.errors import Unavailable
from tocsin.model.validation import InputRules
from tocsin.ports.audit import AuditLog
from tocsin.service_calls.api.failures import CallFailureFilter, CallFailures
from tocsin.timers.failures import FailureFilter
from tocsin.timers.service import TimerService
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest
from tocsin.web.api.service_calls import AgentSource
from tocsin.web.http import failures as wire
from tocsin.web.http.constraints import ROWS_DEFAULT

_operation = partial(Operation, reach=Reach.NAMESPACE_OR_TENANT)


class FailureHandlers:
    """Handles list, members and dismiss."""

    def __init__(
        self, service: TimerService, rules: InputRules, audit: AuditLog, agent: AgentSource | None = None
    ) -> None:
        self._failures = service.failures
        self._rules = rules
        self._requests = wire.FailureRequests(service.failures, audit)
        self._agent = agent

    @property
    def _calls(self) -> CallFailures:
        """Requests about a tenant arrive only where the agent runs."""
        calls = None if self._agent is None else self._agent()
        if calls is None:
            raise Unavailable("the service agent has just moved to another node; try again")
        return calls.failures

    @_operation("listFailures", "/api/v1/failures/list", Role.READ)
    async def list(self, request: ApiRequest, sent: wire.ListFailures) -> wire.FailureList:
        """What has failed and was neither dismissed nor replayed, in groups with the same cause: of a namespace, timers that
        failed or expired, failed occurrences of schedules, and failed notifications; of a tenant, service calls. Each group
        has a sample and its newest failures. Kept for the setting `failure_retention`, unless the namespace's history mode is
        `none`, and service calls no longer than `agent.retention`. The namespace or tenant * takes all that the API key has
        access to. At most 50,000 failures are read, the newest ones, including those of other namespaces in the same shards;
        atLeast states whether older ones were left out."""
        wanted, by, limit = wire.list_request(sent, self._rules, request.key)
        if isinstance(wanted, CallFailureFilter):
            return wire.groups_answer(await self._calls.groups(wanted, by, limit), request.now_us)
        return wire.groups_answer(await self._failures.groups(wanted, by, limit), request.now_us)

    @_operation("listFailureMembers", "/api/v1/failures/members", Role.READ)
    async def members(self, request: ApiRequest, sent: wire.ListFailureMembers) -> wire.FailurePage:
        """The failures of a group, or all of them, newest first. Paginated: send nextCursor back as cursor until a response
        has none. Even an empty page may have one, if few failures match."""
        wanted, limit, cursor = wire.members_request(sent, self._rules, request.key, ROWS_DEFAULT)
        if isinstance(wanted, CallFailureFilter):
            return wire.page_answer(await self._calls.members(wanted, limit, cursor))
        return wire.page_answer(await self._failures.members(wanted, limit, cursor))

    @_operation("dismissFailures", "/api/v1/failures/dismiss", Role.WRITE)
    async def dismiss(self, request: ApiRequest, sent: wire.DismissFailures) -> wire.DismissedFailures:
        """Removes failures from the list: by their ids, those of a group, or all of a namespace or tenant. The history of
        timers and schedules stays as it is, and service calls stay Failed. Written to the audit trail. Safe to repeat."""
        wanted = wire.dismiss_request(sent, self._rules, request.key)
        if not isinstance(sent.tenant, UnsetType):
            assert not isinstance(wanted, FailureFilter)
            tenant, correlation_id = sent.tenant.lower(), request.correlation_id
            return await self._requests.dismiss_calls(self._calls, tenant, wanted, request.actor, correlation_id)
        assert not isinstance(sent.namespace, UnsetType)
        assert not isinstance(wanted, CallFailureFilter)
        return await self._requests.dismiss(sent.namespace, wanted, request.actor)

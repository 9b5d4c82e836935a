"""The operations on the rules of flows."""

from __future__ import annotations

from functools import partial

from tocsin.model.access import Role
from tocsin.model.validation import InputRules
from tocsin.ports.audit import AuditLog
from tocsin.timers.flows import Flows
from tocsin.web.api.operation import Operation, Reach
from tocsin.web.api.request import ApiRequest
from tocsin.web.http import flows as wire

_change = partial(Operation, role=Role.ADMIN, reach=Reach.SERVICE)
_read = partial(Operation, role=Role.READ, reach=Reach.NAMESPACE)


class FlowHandlers:
    """Handles put, get, list, pause, resume and delete."""

    def __init__(self, flows: Flows, rules: InputRules, audit: AuditLog) -> None:
        self._requests = wire.FlowRequests(flows, rules, audit)

    @_change("putFlow", "/api/v1/flows/put")
    async def put(self, request: ApiRequest, sent: wire.PutFlow) -> wire.Flow:
        """Creates the rule of a flow key, or of all keys with a prefix, or replaces its limits; one that is paused stays so.
        Of the rules that match a timer's flowKey, the one with this key applies, or else the one with the longest prefix. A
        key without a rule is not limited. If nothing changes, nothing is written. The limits hold across all nodes. The
        response is sent when every node applies the rule, which takes seconds if a node can't be reached."""
        return wire.flow_answer(await self._requests.put(sent, request.actor), request.now_us)

    @_read("getFlow", "/api/v1/flows/get")
    async def get(self, request: ApiRequest, sent: wire.FlowName) -> wire.Flow:
        """The rule with this match, and what is in flight and waits in the whole cluster."""
        return wire.flow_answer(await self._requests.get(sent), request.now_us)

    @_read("listFlows", "/api/v1/flows/list")
    async def list(self, request: ApiRequest, sent: wire.ListFlows) -> wire.FlowPage:
        """The rules of a namespace by match, each as flows/get shows it. Paginated: send nextCursor back as cursor until a
        response has none."""
        return await self._requests.list(sent, request.now_us)

    @_change("pauseFlow", "/api/v1/flows/pause")
    async def pause(self, request: ApiRequest, sent: wire.PauseFlow) -> wire.Flow:
        """From the response on, no attempt of the rule's keys begins until it is resumed, or the instant given. In-flight
        attempts go on."""
        return wire.flow_answer(await self._requests.pause(sent, request.actor, request.now_us), request.now_us)

    @_change("resumeFlow", "/api/v1/flows/resume")
    async def resume(self, request: ApiRequest, sent: wire.FlowName) -> wire.Flow:
        """Ends a pause. What waits begins as the limits allow."""
        return wire.flow_answer(await self._requests.resume(sent, request.actor), request.now_us)

    @_change("deleteFlow", "/api/v1/flows/delete", status=204)
    async def delete(self, request: ApiRequest, sent: wire.DeleteFlow) -> None:
        """Its keys are subject to the rule with the next longest prefix then, or not limited. Timers keep their flowKey."""
        await self._requests.delete(sent, request.actor)

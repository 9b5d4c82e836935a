"""The rules of flows: how they are read and changed, and what is in flight and waits of each in the whole cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from tocsin.administration import FLOW_RECORDS
from tocsin.model.errors import FieldError, FlowNotFound, InvalidInput, TooManyFlows, Unavailable
from tocsin.model.flow import FLOWS_MAX, Flow, FlowRules
from tocsin.ports.forward import FlowCounts
from tocsin.timers.cluster_view import others_alive
from tocsin.timers.engine.flow_shown import counts
from tocsin.timers.scoped_records import ScopedRecords

#: When to repeat a request for a rule whose record is damaged: an operator has to put it again first.
_DAMAGED_RETRY_AFTER_S = 60.0
_NO_RULES = FlowRules(())


class FlowView(NamedTuple):
    """A rule, and what nodes have of it. `complete`: all living nodes have answered; otherwise it may be more. `unchanged`:
    a change has found nothing to change, and written nothing."""

    flow: Flow
    counts: FlowCounts
    complete: bool
    unchanged: bool = False


class Flows(ScopedRecords[Flow]):
    """The rules of flows, by what they match."""

    kind, without, not_found = "flow", "its own timers have no flows", FlowNotFound
    most, too_many = FLOWS_MAX, TooManyFlows
    full = "rules of flows, the maximum; delete one, or match keys by a prefix"
    records = FLOW_RECORDS

    def known(self, namespace: str) -> FlowRules:
        return self._context.flows.get(namespace, _NO_RULES)

    async def get(self, namespace: str, match: str) -> FlowView:
        """The rule with this match. Raises FlowNotFound."""
        rules = await self._stored(namespace)
        return (await self._views(namespace, [self._found(rules.get(match), namespace, match)]))[0]

    async def put(
        self,
        wanted: Flow,
        managed_by: str | UnsetType | None = UNSET,
        expected_version: int | None = None,
    ) -> FlowView:
        """Creates the rule, or replaces its limits; one that is paused stays so, and its mark of who manages it stays if none
        is given. Limits of each key that are ordered require a namespace with one shard. Raises TooManyFlows, InvalidInput,
        and VersionConflict if the rule has not the version that is expected (0: there is none)."""

        def paused_as_before(known: Flow | None) -> Flow:
            if known is None:
                return wanted
            return msgspec.structs.replace(wanted, paused=known.paused, paused_until=known.paused_until)

        if wanted.ordered:
            # Before versions and numbers of rules are compared: what is invalid stays so, whatever others change.
            await self._refresh_to_change(wanted.namespace)
            self._refuse_shards(wanted.namespace)
        return await self._viewed(*await self._put(wanted, managed_by, expected_version, paused_as_before))

    async def pause(self, namespace: str, match: str, until_us: int | None = None) -> FlowView:
        """Lets nothing of the rule begin, until an instant if one is given. Raises FlowNotFound."""
        return await self._set(namespace, match, paused=True, paused_until=until_us)

    async def resume(self, namespace: str, match: str) -> FlowView:
        """Ends a pause. Raises FlowNotFound."""
        return await self._set(namespace, match, paused=False, paused_until=None)

    async def delete(self, namespace: str, match: str, expected_version: int | None = None) -> None:
        """Removes the rule: its keys are subject to the rule with the next longest prefix, or not limited. Raises
        FlowNotFound, and VersionConflict if it has not the version that is expected."""
        await self._delete(namespace, match, expected_version)

    # ------------------------------------------------------------------ helpers

    def _refuse_shards(self, namespace: str) -> None:
        """Refuses an ordered rule in a namespace whose timers are in several shards: no node knows all timers of a key."""
        shards = self._namespaces.get(namespace).num_shards
        if shards != 1:
            reason = (
                f"requires a namespace whose timers are all in one shard, and {namespace!r} has numShards {shards}, which "
                "is permanent; create another one with numShards 1"
            )
            raise InvalidInput(FieldError("perKey.ordered", reason))

    async def _set(self, namespace: str, match: str, *, paused: bool, paused_until: int | None) -> FlowView:
        def change(known: Flow | None) -> Flow:
            flow = self._found(known, namespace, match)
            if flow.limits_nothing:
                raise Unavailable(
                    f"the stored record of flow {match!r} in namespace {namespace!r} is damaged, so nothing of it begins; "
                    "put it again with flows/put",
                    retry_after_s=_DAMAGED_RETRY_AFTER_S,
                )
            changed = msgspec.structs.replace(flow, paused=paused, paused_until=paused_until)
            if changed == flow:
                return flow
            now_us = self._context.clock.now_us()
            return msgspec.structs.replace(changed, updated_at=now_us, version=flow.version + 1)

        return await self._viewed(*await self._change(namespace, match, change))

    async def _viewed(self, flow: Flow, changed: bool) -> FlowView:
        return (await self._views(flow.namespace, [flow]))[0]._replace(unchanged=not changed)

    async def _views(self, namespace: str, flows: Sequence[Flow]) -> list[FlowView]:
        """The rules with what all nodes have of them."""
        reports: dict[bytes, Mapping[str, FlowCounts]] = {
            self._supervisor.incarnation: counts(self._supervisor.dispatcher.flows.rules.values(), namespace)
        }
        others: Collection[bytes] = ()
        peers = self._namespaces.peers
        if flows and peers is not None:
            others = others_alive(self._supervisor)
            reports |= await peers.flow_counts(namespace)
        complete = reports.keys() >= set(others)
        return [FlowView(flow, _sum(flow.match, reports.values()), complete) for flow in flows]

    async def of_all(self, permits: Callable[[str], bool], most: int) -> tuple[list[FlowView], bool]:
        """The first rules of all namespaces that `permits` names, by namespace and match, and whether more follow."""
        flows, more = await self._first(filter(permits, self._context.flows), most)
        by_namespace = groupby(flows, key=lambda flow: flow.namespace)
        return [view for name, group in by_namespace for view in await self._views(name, [*group])], more

    # Last in the class, because it hides the built-in name in what follows.
    async def list(self, namespace: str, after: str, limit: int) -> tuple[list[FlowView], bool]:
        """The first rules behind the match `after`, by match, and whether more follow."""
        flows, more = await self._page(namespace, after, limit)
        return await self._views(namespace, flows), more


def _sum(match: str, reports: Iterable[Mapping[str, FlowCounts]]) -> FlowCounts:
    found = [each[match] for each in reports if match in each]
    return FlowCounts(sum(each.in_flight for each in found), sum(each.waiting for each in found))

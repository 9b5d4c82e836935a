"""The rules of flows: how they are read and changed, and what is in flight and waits of each in the whole cluster."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from tocsin.administration import delete_flow, put_flow
from tocsin.model.batch import CallbackBatch
from tocsin.model.errors import (
    Conflict,
    FieldError,
    FlowNotFound,
    InvalidInput,
    NamespaceDeleting,
    NamespaceNotFound,
    TooManyFlows,
    Unavailable,
)
from tocsin.model.flow import FLOWS_MAX, Flow, FlowLimits, FlowRules
from tocsin.model.namespace import RESERVED_PREFIX
from tocsin.ports.forward import FlowCounts
from tocsin.timers.cluster_view import others_alive
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.flow_shown import counts
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.namespaces import Namespaces, refuse_version, until_known_everywhere

#: Attempts at a change of a rule that others change at the same time.
_TRIES_MAX = 10
#: When to repeat a request for a rule whose record is damaged: an operator has to put it again first.
_DAMAGED_RETRY_AFTER_S = 60.0
_NO_RULES = FlowRules(())


class FlowView(NamedTuple):
    """A rule, and what nodes have of it. `complete`: all living nodes have answered; otherwise it may be more. `unchanged`:
    `put` has found nothing to change, and written nothing."""

    flow: Flow
    counts: FlowCounts
    complete: bool
    unchanged: bool = False


class Flows:
    """The rules of flows. A change returns when every node that may fire a timer applies it, as `Namespaces.update` does.
    Every method raises NamespaceNotFound and Unavailable, and those that change something NamespaceDeleting and Conflict."""

    def __init__(self, context: Context, supervisor: Supervisor, namespaces: Namespaces) -> None:
        self._context, self._supervisor, self._namespaces = context, supervisor, namespaces
        # One change at a time on this node, so that changes don't force one another to retry.
        self._turn = asyncio.Lock()

    async def get(self, namespace: str, match: str) -> FlowView:
        """The rule with this match. Raises FlowNotFound."""
        rules = await self._rules(namespace)
        return (await self._views(namespace, [_found(rules.get(match), namespace, match)]))[0]

    async def put(
        self,
        namespace: str,
        match: str,
        *,
        per_key: FlowLimits | None = None,
        total: FlowLimits | None = None,
        close_on_retry_after: bool = False,
        callback_batch: CallbackBatch | None = None,
        managed_by: str | msgspec.UnsetType | None = msgspec.UNSET,
        expected_version: int | None = None,
    ) -> FlowView:
        """Creates the rule, or replaces its limits; one that is paused stays so, and its mark of who manages it stays if none
        is given. `per_key` that are ordered require a namespace with one shard. Raises TooManyFlows, InvalidInput, and
        VersionConflict if the rule has not the version that is expected (0: there is none)."""
        unchanged = False

        def change(known: Flow | None) -> Flow:
            nonlocal unchanged
            refuse_version(f"flow {match!r}", 0 if known is None else known.version, expected_version)
            now = self._context.clock.now_us()
            if per_key is not None and per_key.ordered:
                self._refuse_shards(namespace)
            if known is None:
                if len(self._known(namespace)) >= FLOWS_MAX:
                    raise TooManyFlows(
                        f"namespace {namespace!r} has {FLOWS_MAX} rules of flows, the maximum; delete one, or match keys by "
                        "a prefix"
                    )
                return Flow(
                    namespace, match, now, now, per_key, total, close_on_retry_after,
                    managed_by=managed_by or None, callback_batch=callback_batch,
                )  # fmt: skip
            changed = _changed(
                known,
                now,
                created_at=known.created_at or now,
                per_key=per_key,
                total=total,
                close_on_retry_after=close_on_retry_after,
                callback_batch=callback_batch,
                managed_by=known.managed_by if managed_by is msgspec.UNSET else managed_by,
            )
            unchanged = changed is known
            return changed

        return (await self._change(namespace, match, change))._replace(unchanged=unchanged)

    async def pause(self, namespace: str, match: str, until_us: int | None = None) -> FlowView:
        """Lets nothing of the rule begin, until an instant if one is given. Raises FlowNotFound."""
        return await self._set(namespace, match, paused=True, paused_until=until_us)

    async def resume(self, namespace: str, match: str) -> FlowView:
        """Ends a pause. Raises FlowNotFound."""
        return await self._set(namespace, match, paused=False, paused_until=None)

    async def delete(self, namespace: str, match: str, expected_version: int | None = None) -> None:
        """Removes the rule: its keys are subject to the rule with the next longest prefix, or not limited. Raises
        FlowNotFound, and VersionConflict if it has not the version that is expected."""
        async with self._turn:
            await self._refresh_to_change(namespace)
            known = _found(self._known(namespace).get(match), namespace, match)
            refuse_version(f"flow {match!r}", known.version, expected_version)
            await self._namespaces.read(delete_flow(self._context.store, namespace, match))
            await self._namespaces.refresh()
        await self._apply_everywhere()

    # ------------------------------------------------------------------ helpers

    def _known(self, namespace: str) -> FlowRules:
        return self._context.flows.get(namespace, _NO_RULES)

    async def _rules(self, namespace: str) -> FlowRules:
        """The namespace's rules, as stored."""
        await self._namespaces.refresh()
        self._namespaces.get(namespace)
        return self._known(namespace)

    async def _refresh_to_change(self, namespace: str) -> None:
        if namespace.startswith(RESERVED_PREFIX):
            reason = f"begins with {RESERVED_PREFIX!r}, which is reserved for the server: its own timers have no flows"
            raise InvalidInput(FieldError("namespace", reason))
        await self._namespaces.refresh()
        self._namespaces.get(namespace)
        self._namespaces.refuse_deleting(namespace)

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
            flow = _found(known, namespace, match)
            if flow.limits_nothing:
                raise Unavailable(
                    f"the stored record of flow {match!r} in namespace {namespace!r} is damaged, so nothing of it begins; "
                    "put it again with flows/put",
                    retry_after_s=_DAMAGED_RETRY_AFTER_S,
                )
            return _changed(flow, self._context.clock.now_us(), paused=paused, paused_until=paused_until)

        return await self._change(namespace, match, change)

    async def _change(self, namespace: str, match: str, change: Callable[[Flow | None], Flow]) -> FlowView:
        async with self._turn:
            flow = await self._change_stored(namespace, match, change)
        await self._apply_everywhere()
        return (await self._views(namespace, [flow]))[0]

    async def _change_stored(self, namespace: str, match: str, change: Callable[[Flow | None], Flow]) -> Flow:
        """Makes the change to the stored rule, again if others change it at the same time."""
        store, read = self._context.store, self._namespaces.read
        for _ in range(_TRIES_MAX):
            await self._refresh_to_change(namespace)
            known = self._known(namespace).get(match)
            changed = change(known)
            if changed is known:
                return changed
            if await read(put_flow(store, changed)):
                await self._namespaces.refresh()
                if known is None:
                    await self._withdraw_orphan(namespace, match)
                return changed
        raise Conflict(
            f"others changed flow {match!r} in namespace {namespace!r} at the same time {_TRIES_MAX} times; try again"
        )

    async def _withdraw_orphan(self, namespace: str, match: str) -> None:
        """Removes a rule that was created while its namespace was deleted, whose rules may have been removed before. Raises
        NamespaceNotFound, NamespaceDeleting then."""
        try:
            self._namespaces.get(namespace)
            self._namespaces.refuse_deleting(namespace)
        except (NamespaceNotFound, NamespaceDeleting):
            await self._namespaces.read(delete_flow(self._context.store, namespace, match))
            raise

    async def _apply_everywhere(self) -> None:
        """Returns when every node that may fire a timer applies the rules as they are stored (rule 23)."""
        peers = self._namespaces.peers
        if peers is not None:
            await until_known_everywhere(self._context, self._supervisor.membership, peers)

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
        await self._namespaces.refresh()
        found: list[FlowView] = []
        for name in sorted(filter(permits, self._context.flows)):
            flows = self._known(name).all()
            room = most - len(found)
            found += await self._views(name, flows[:room])
            if len(flows) > room:
                return found, True
        return found, False

    # Last in the class, because it hides the built-in name in what follows.
    async def list(self, namespace: str, after: str, limit: int) -> tuple[list[FlowView], bool]:
        """The first rules behind the match `after`, by match, and whether more follow."""
        flows = (await self._rules(namespace)).all()
        flows = flows[bisect_right(flows, after, key=lambda flow: flow.match) :]
        return await self._views(namespace, flows[:limit]), len(flows) > limit


def _found(flow: Flow | None, namespace: str, match: str) -> Flow:
    if flow is None:
        raise FlowNotFound(f"namespace {namespace!r} has no flow {match!r}; create it with flows/put")
    return flow


def _changed(known: Flow, now_us: int, **fields: Any) -> Flow:
    """The rule with these fields, in its next version; the same one if nothing differs."""
    changed = msgspec.structs.replace(known, **fields)
    if changed == known:
        return known
    return msgspec.structs.replace(changed, updated_at=now_us, version=known.version + 1)


def _sum(match: str, reports: Iterable[Mapping[str, FlowCounts]]) -> FlowCounts:
    found = [each[match] for each in reports if match in each]
    return FlowCounts(sum(each.in_flight for each in found), sum(each.waiting for each in found))

"""How rules of flows are read and changed where others change them too, and what nodes report of them."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

import tocsin.timers.flows as flows_module
from tocsin.administration import FLOWS, NAMESPACES, ScopedKind, flows
from tocsin.model.errors import Conflict, FlowNotFound, NamespaceNotFound, TooManyFlows, Unavailable
from tocsin.model.flow import Flow, FlowLimits
from tocsin.ports.forward import FlowCounts
from tocsin.ports.records import Records
from tocsin.stores.memory import MemoryStore
from tocsin.telemetry.clock import SystemClock
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.engine.supervisor import Supervisor
from tocsin.timers.flows import Flows
from tocsin.timers.service import TimerService

ONE, TWO = FlowLimits(parallelism=1), FlowLimits(parallelism=2)
OTHER = b"o" * 16


def rule(match: str, total: FlowLimits = ONE) -> Flow:
    return Flow("default", match, 0, 0, total=total)


#: Writes a rule.
WRITE = ScopedKind.put


class Uncalled:
    """A caller for timers; there are none."""

    def destination(self, url: str) -> str:
        return url


class Others:
    """The other nodes: what they have of flows."""

    def __init__(self, counts: Mapping[bytes, Mapping[str, FlowCounts]]) -> None:
        self._counts = counts

    async def flow_counts(self, namespace: str) -> Mapping[bytes, Mapping[str, FlowCounts]]:
        return self._counts

    async def refresh_namespaces(self, nodes: Mapping[bytes, str]) -> set[bytes]:
        return set(nodes)


@pytest.fixture
async def service() -> AsyncIterator[TimerService]:
    clock = SystemClock()
    store = MemoryStore(clock)
    await store.open(1)
    context = Context(
        store=store, caller=Uncalled(), clock=clock, limits=EngineLimits(), observe=lambda event: None,
        random=random.Random(1), incarnation=b"n" * 16,
    )  # fmt: skip
    supervisor = Supervisor(context, node="n", address="", total_shards=1, fatal=lambda error: None)
    made = TimerService(context, supervisor, namespace_num_shards=1, retention_us=10**12)
    await made.namespaces.ensure_default()
    yield made


@pytest.fixture
def rules(service: TimerService) -> Flows:
    return service.flow_rules


@pytest.fixture
def store(service: TimerService) -> Records:
    return service._context.store


async def test_no_more_rules_than_nodes_keep_in_memory(
    rules: Flows, store: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Flows, "most", 2)
    for match in ("a", "b"):
        await rules.put(rule(match))
    with pytest.raises(TooManyFlows, match="has 2 rules"):
        await rules.put(rule("c"))
    # One that is there can be changed, and another namespace has its own.
    assert (await rules.put(rule("a", TWO))).flow.version == 2
    assert len(await flows(store)) == 2


async def test_a_change_is_made_to_what_others_have_just_changed(
    rules: Flows, store: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rules.put(rule("a"))
    others = iter([1, 2])

    async def late(kind: ScopedKind[Flow], records: Records, changed: Flow) -> bool:
        if next(others, None) is not None:
            (known,) = await flows(records)
            paused = Flow("default", "a", known.created_at, 9, None, ONE, paused=True, version=known.version + 1)
            await WRITE(kind, records, paused)
        return await WRITE(kind, records, changed)

    monkeypatch.setattr(ScopedKind, "put", late)
    put = await rules.put(rule("a", TWO))
    assert (put.flow.total, put.flow.paused, put.flow.version) == (TWO, True, 4)
    others = iter(range(100))
    with pytest.raises(Conflict, match="at the same time 10 times"):
        await rules.resume("default", "a")


async def test_a_rule_whose_record_is_damaged_holds_its_keys_until_it_is_put_again(
    rules: Flows, store: Records
) -> None:
    await store.put_record(FLOWS, "default/a", "{", None)
    assert (await rules.get("default", "a")).flow.paused
    with pytest.raises(Unavailable, match="damaged"):
        await rules.resume("default", "a")
    put = (await rules.put(rule("a"))).flow
    assert (put.paused, put.version) == (True, 2)
    assert put.created_at == put.updated_at > 0
    assert not (await rules.resume("default", "a")).flow.paused


async def test_a_rule_that_is_created_while_its_namespace_goes_goes_too(
    rules: Flows, store: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def late(kind: ScopedKind[Flow], records: Records, created: Flow) -> bool:
        await records.delete_records(NAMESPACES, ["default"])
        return await WRITE(kind, records, created)

    monkeypatch.setattr(ScopedKind, "put", late)
    with pytest.raises(NamespaceNotFound):
        await rules.put(rule("a"))
    assert await flows(store) == []


async def test_counts_are_those_of_all_nodes_and_incomplete_if_one_does_not_answer(
    service: TimerService, rules: Flows, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alive(_: Any) -> dict[bytes, str]:
        return {OTHER: "other"}

    monkeypatch.setattr(flows_module, "others_alive", alive)
    for match in ("a", "b"):
        await rules.put(rule(match))
    assert (await rules.get("default", "a")).complete
    service.namespaces.peers = Others({OTHER: {"a": FlowCounts(2, 3)}})  # type: ignore[assignment]
    views, more = await rules.list("default", "", 5)
    assert [(each.flow.match, each.counts, each.complete) for each in views] == [
        ("a", FlowCounts(2, 3), True),
        ("b", FlowCounts(0, 0), True),
    ]
    assert not more
    service.namespaces.peers = Others({})  # type: ignore[assignment]
    assert (await rules.get("default", "a"))[1:3] == (FlowCounts(0, 0), False)


async def test_a_rule_that_is_not_there_is_not_found(rules: Flows) -> None:
    for change in (rules.get, rules.pause, rules.resume, rules.delete):
        with pytest.raises(FlowNotFound, match="flows/put"):
            await change("default", "a")  # type: ignore[operator]

"""What a node remembers of its monitors is limited, and what is not remembered is written (rule 33)."""

from __future__ import annotations

import random

import pytest

from tocsin.model.monitor import Monitor, MonitorDefinition, MonitorState, MonitorStatus, Ping, PingEvent
from tocsin.model.timer import Timer
from tocsin.stores.memory import MemoryStore
from tocsin.testing.clock import FakeClock
from tocsin.timers.engine import monitored
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.limits import EngineLimits
from tocsin.timers.engine.monitored import MonitorMemory, MonitorsRemembered
from tocsin.timers.engine.monitoring import Outage, monitor_of
from tocsin.timers.engine.rows import OpKind, Row, WriteOp
from tocsin.timers.engine.shard import Shard

S = 1_000_000
START = 1_800_000_000 * S
SIZE = 400


def uuid(number: int) -> bytes:
    """That of a monitor."""
    return number.to_bytes(16, "big")


def row(number: int, *, last_ping: int = START, size: int = SIZE) -> Row:
    """The durable row of a monitor whose next period opens in an hour."""
    at = START + 3_600 * S
    state = MonitorState(
        "token",
        MonitorStatus.UP,
        START,
        last_ping=last_ping,
        expected=at,
        opens=at,
        due=at + 60 * S,
        deadline=at + 60 * S,
    )
    monitor = Monitor(MonitorDefinition(cron="0 * * * *", grace_us=60 * S), state)
    timer = Timer("n", f"m{number}", at + 60 * S, "", START, START, monitor=monitor)
    return Row((timer.execute_at, uuid(number)), uuid(number), timer, size)


def stays_in_memory(memory: MonitorMemory, number: int, at_us: int = START + S) -> bool:
    """Whether a further ping need not be written."""
    return memory.note(uuid(number), Ping(PingEvent.SUCCESS), at_us) is not None


@pytest.mark.parametrize(("name", "most"), [("REMEMBERED_MAX", 3), ("REMEMBERED_BYTES_MAX", 3 * SIZE + 1)])
def test_shards_share_what_a_node_may_remember(monkeypatch: pytest.MonkeyPatch, name: str, most: int) -> None:
    monkeypatch.setattr(monitored, name, most)
    remembered = MonitorsRemembered()
    one, other = MonitorMemory(remembered), MonitorMemory(remembered)
    for number in (1, 2):
        one.committed(uuid(number), row(number))
    for number in (3, 4):
        other.committed(uuid(number), row(number))
    assert [stays_in_memory(one, number) for number in (1, 2)] == [True, True]
    assert [stays_in_memory(other, number) for number in (3, 4)] == [True, False]
    # A row that is written again takes no more room; one that is deleted leaves its room to another.
    one.committed(uuid(1), row(1))
    one.committed(uuid(2), None)
    other.committed(uuid(4), row(4))
    assert stays_in_memory(other, 4)
    assert (remembered.count, remembered.bytes) == (3, 3 * SIZE)


def test_ping_in_memory_outlasts_a_write_for_which_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitored, "REMEMBERED_BYTES_MAX", SIZE)
    memory = MonitorMemory()
    memory.committed(uuid(1), row(1))
    assert stays_in_memory(memory, 1)
    # The batch was assembled before the ping came.
    longer = row(1, size=2 * SIZE)
    memory.committed(uuid(1), longer)
    assert monitor_of(memory.latest(longer))[1].last_ping == START + S
    # This one has it.
    memory.committed(uuid(1), row(1, last_ping=START + S, size=2 * SIZE))
    assert memory.row(uuid(1)) is None


class Idle:
    """A lane in which nothing is committed."""

    def schedule(self, *_: object, **__: object) -> None:
        """Something was queued."""


def context_of(clock: FakeClock) -> Context:
    """That of a node which calls nobody."""
    return Context(
        store=MemoryStore(clock),
        caller=None,  # type: ignore[arg-type]
        clock=clock,
        limits=EngineLimits(),
        observe=lambda event: None,
        random=random.Random(1),
        incarnation=bytes(16),
    )


def test_report_before_the_first_heartbeat_of_a_node_that_was_frozen_knows_of_the_outage() -> None:
    clock = FakeClock()
    context = context_of(clock)
    context.beat_at_us, context.lease_until = clock.now_us(), clock.boottime_us() + 5 * S
    shard = Shard(0, context, Idle(), changed=lambda _: None, lost=lambda *_: None)  # type: ignore[arg-type]
    shard.own(1)
    assert shard.window is not None
    for after, outages in ((4, []), (2, [6]), (10, [16])):
        clock.advance(after * S)
        shard.accept(WriteOp(OpKind.SCHEDULE, uuid(1), change=Ping(PingEvent.SUCCESS)))
        assert shard.window.monitors.outages == tuple(
            Outage(context.beat_at_us, context.beat_at_us + seconds * S) for seconds in outages
        )


def test_shard_that_is_lost_leaves_its_room_to_others() -> None:
    context = context_of(FakeClock())
    shard = Shard(0, context, None, changed=lambda _: None, lost=lambda *_: None)  # type: ignore[arg-type]
    for epoch in (1, 2):
        shard.own(epoch)
        assert shard.window is not None
        shard.window.monitors.committed(uuid(1), row(1))
        remembered = context.monitors_remembered
        assert (remembered.count, remembered.bytes) == (1, SIZE)
        shard.lose("fenced")
        assert (remembered.count, remembered.bytes) == (0, 0)

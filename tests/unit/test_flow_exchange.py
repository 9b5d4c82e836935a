"""What a node reports to a home elsewhere, and what it makes of the answers: a scripted home, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tests.simulation.crowd import Crowd

from tocsin.model.answer import Response
from tocsin.model.errors import Unavailable
from tocsin.model.flow import Flow, FlowLimits
from tocsin.model.ids import timer_uuid
from tocsin.ports.flows import FlowAnswer, FlowGrant, FlowReport, HomePlace, KeyReport, RuleReport
from tocsin.ports.forward import Owner
from tocsin.ports.store import ShardBatch

HOME = b"h" * 16


class ScriptedHome:
    """Grants one attempt of each key that wants some, after a delay; the reports that it got."""

    def __init__(self) -> None:
        self.reports: list[FlowReport] = []
        self.delay_s = 0.001
        self.down = False
        self.grants = True

    async def report_flows(self, incarnation: bytes, reports: Sequence[FlowReport]) -> list[FlowAnswer]:
        self.reports += reports
        answers = [FlowAnswer(each.shard_id, each.epoch, each.number, self._grants(each)) for each in reports]
        await asyncio.sleep(self.delay_s)
        if self.down:
            raise Unavailable("down")
        return answers

    def _grants(self, report: FlowReport) -> list[FlowGrant]:
        return [
            FlowGrant(rule.namespace, rule.match, key.key, int(self.grants and not key.in_use), 50_000)
            for rule in report.rules
            for key in rule.keys
            if key.wanted
        ]

    async def ask_flows(self, incarnation: bytes, homes: Sequence[HomePlace]) -> list[FlowReport]:
        raise AssertionError("no home is here")

    def flows_are_free(self, incarnation: bytes, shard_ids: Sequence[int]) -> None:
        raise AssertionError("no home is here")


def elsewhere(
    timers: int, script: Callable[[Crowd, ScriptedHome], None] = lambda crowd, home: None
) -> tuple[Crowd, ScriptedHome]:
    """A node whose flow has its home at another one."""
    crowd, home = Crowd(), ScriptedHome()
    crowd.flows = [Flow("a", "vendor", 0, 0, per_key=FlowLimits(parallelism=1))]
    for number in range(timers):
        crowd.keep(f"t{number}", "fine", 2, flow="vendor")
    supervisor = crowd.supervisor
    supervisor.flows.peers = home
    supervisor.dispatcher.flows.own = lambda shard: None  # type: ignore[method-assign]
    supervisor.placement.owner = lambda shard_id: Owner(HOME, 5, "there")  # type: ignore[method-assign]
    script(crowd, home)
    return crowd, home


def test_each_attempt_has_a_grant_and_each_end_is_reported() -> None:
    crowd, home = elsewhere(10)
    crowd.run(5)
    assert len(crowd.receivers.calls) == 10
    numbers = [report.number for report in home.reports]
    assert numbers == sorted(set(numbers))
    last = home.reports[-1].rules[0]
    assert (last.in_use, last.begun, last.keys[0].in_use, last.keys[0].wanted) == (0, 10, 0, 0)
    # Nothing is left that the home does not know.
    assert not crowd.supervisor.dispatcher.flows.known("a", "vendor")


def test_without_an_answer_nothing_begins_and_the_node_asks_again() -> None:
    def script(crowd: Crowd, home: ScriptedHome) -> None:
        home.down = True

    crowd, home = elsewhere(3, script)

    async def recover() -> None:
        await asyncio.sleep(4)
        assert not crowd.receivers.calls
        assert 10 < len(home.reports) < 40
        home.down = False

    crowd.run(8, recover)
    assert len(crowd.receivers.calls) == 3


def test_a_late_answer_grants_nothing() -> None:
    def script(crowd: Crowd, home: ScriptedHome) -> None:
        home.delay_s = 1.001

    crowd, home = elsewhere(1, script)

    async def recover() -> None:
        await asyncio.sleep(8)
        assert len(home.reports) > 3
        assert not crowd.receivers.calls
        home.delay_s = 0.5

    crowd.run(12, recover)
    assert len(crowd.receivers.calls) == 1


def test_an_answer_that_a_later_report_overtook_grants_nothing() -> None:
    crowd, home = elsewhere(2)

    async def overtake() -> None:
        home.delay_s = 0.5
        await asyncio.sleep(1.1)
        first = len(home.reports)
        assert first == 1
        home.grants = False
        crowd.supervisor.flows.freed([0])
        await asyncio.sleep(0.1)
        assert len(home.reports) == 2
        # The answer to the first report, which grants one, comes when the second is under way.
        await asyncio.sleep(0.6)
        assert not crowd.receivers.calls
        home.grants = True

    crowd.run(8, overtake)
    assert len(crowd.receivers.calls) == 2


def test_a_report_voids_what_was_granted_before() -> None:
    crowd, home = elsewhere(2)
    crowd.limits = {"a": FlowLimits(parallelism=5)}
    grants = home._grants

    async def report() -> None:
        home._grants = lambda report: [each for each in grants(report) if each.match]  # type: ignore[method-assign]
        await asyncio.sleep(1.01)
        state, before = crowd.supervisor.dispatcher.flows.known("a", "vendor"), len(home.reports)
        assert state is not None
        assert state.granted == 1
        home.delay_s = 0.5
        crowd.supervisor.flows.freed([0])
        await asyncio.sleep(0.1)
        assert len(home.reports) > before
        assert state.granted == 0

    crowd.run(4, report)


def test_what_a_former_home_has_granted_is_void() -> None:
    crowd, home = elsewhere(2)
    crowd.flows[0] = Flow("a", "vendor", 0, 0, per_key=FlowLimits(parallelism=1))
    crowd.limits = {"a": FlowLimits(parallelism=5)}
    grants = home._grants

    async def move() -> None:
        # The flow's home grants, that of the namespace does not: what was granted is held for a while.
        home._grants = lambda report: [each for each in grants(report) if each.match]  # type: ignore[method-assign]
        await asyncio.sleep(1.01)
        state = crowd.supervisor.dispatcher.flows.known("a", "vendor")
        assert state is not None
        assert state.granted == 1
        crowd.supervisor.placement.owner = lambda shard_id: Owner(b"N" * 16, 6, "elsewhere")  # type: ignore[method-assign]
        crowd.supervisor.placement.notify()
        assert state.granted == 0
        home._grants = grants  # type: ignore[method-assign]

    crowd.run(8, move)
    assert len(crowd.receivers.calls) == 2


def test_a_report_to_a_home_that_moves_before_it_is_sent_goes_to_the_next_one() -> None:
    crowd, home = elsewhere(1)
    exchange, placement = crowd.supervisor.flows, crowd.supervisor.placement
    send = exchange._send

    def moves(incarnation: bytes) -> None:
        # The rows of the shards have been read. Who watches them is notified later.
        placement.owner = lambda shard_id: Owner(b"N" * 16, 6, "elsewhere")  # type: ignore[method-assign]
        asyncio.get_running_loop().call_later(0.5, placement.notify)
        send(incarnation)

    exchange._send = moves  # type: ignore[method-assign]
    crowd.run(8)
    assert {report.epoch for report in home.reports} == {6}
    assert len(crowd.receivers.calls) == 1


def test_a_refused_node_asks_when_the_home_states() -> None:
    def script(crowd: Crowd, home: ScriptedHome) -> None:
        home.grants = False

    crowd, home = elsewhere(1, script)
    crowd.run(4)
    # Due at 2 s, and 2 s long every 50 ms.
    assert 30 <= len(home.reports) <= 42


def test_a_notified_node_asks_at_once() -> None:
    def script(crowd: Crowd, home: ScriptedHome) -> None:
        home.grants = False

    crowd, home = elsewhere(1, script)

    async def free() -> None:
        await asyncio.sleep(1.02)
        before = len(home.reports)
        home.grants = True
        crowd.supervisor.flows.freed([0])
        await asyncio.sleep(0.005)
        assert len(home.reports) == before + 1

    crowd.run(4, free)
    assert len(crowd.receivers.calls) == 1


def test_a_grant_that_is_not_used_is_returned() -> None:
    def script(crowd: Crowd, home: ScriptedHome) -> None:
        crowd.context.limits = crowd.context.limits.__class__(callbacks_in_flight_max=1)

    crowd, home = elsewhere(1, script)
    crowd.keep("slow", "hung", 1.5, timeout_s=4)

    async def look() -> None:
        await asyncio.sleep(3)

    crowd.run(9, look)
    assert len(crowd.receivers.calls) == 2
    assert [report.rules[0].begun for report in home.reports if report.rules][-1] == 1


def test_what_is_granted_to_a_key_that_has_nothing_left_is_returned() -> None:
    def script(crowd: Crowd, home: ScriptedHome) -> None:
        home.delay_s = 0.5

    crowd, home = elsewhere(1, script)

    async def lose() -> None:
        while not home.reports:  # noqa: ASYNC110 -- virtual time
            await asyncio.sleep(0.1)
        shard = crowd.supervisor.shards[0]
        assert shard.window is not None
        # Otherwise the next claim would find it, and want something, too.
        deletes = [timer_uuid("a", "t0")]
        await crowd.store.apply([ShardBatch(0, shard.window.epoch, crowd.context.incarnation, deletes=deletes)])
        shard.lose("lease")

    crowd.run(3, lose)
    # The home takes it for used until a report no longer has the key.
    first, second = home.reports[:2]
    assert [key.wanted for key in first.rules[0].keys] == [1]
    assert not second.rules


def test_a_flow_that_its_receiver_closed_opens_by_itself() -> None:
    def script(crowd: Crowd, home: ScriptedHome) -> None:
        limits = FlowLimits(parallelism=1)
        crowd.flows = [Flow("a", "vendor", 0, 0, per_key=limits, close_on_retry_after=True)]
        crowd.receivers.answers["fine"] = (Response(429, retry_after="4"), 2.5)

    crowd, _ = elsewhere(2, script)
    crowd.run(9)
    first, *later = [call.at_us - crowd.receivers.calls[0].at_us for call in crowd.receivers.calls]
    assert first == 0
    assert 4_000_000 <= later[0] < 4_200_000
    assert {call.invocation.timer_id for call in crowd.receivers.calls} == {"t0", "t1"}


def test_a_node_that_is_asked_reports_to_the_new_home() -> None:
    crowd, home = elsewhere(5)
    asked: list[FlowReport] = []

    async def ask() -> None:
        crowd.receivers.takes_s["fine"] = 0.3
        await asyncio.sleep(1.2)
        asked.extend(crowd.supervisor.flows.asked(b"n" * 15 + b"2", [(0, 6)]))
        assert crowd.supervisor.flows.asked(HOME, [(0, 4)]) == []

    crowd.run(8, ask)
    (report,) = asked
    assert (report.epoch, report.rules[0].keys[0].in_use, report.rules[0].keys[0].wanted) == (6, 1, 0)
    assert {each.epoch for each in home.reports if each.number > report.number} == {6}
    assert len(crowd.receivers.calls) == 5


def test_a_key_whose_attempt_ended_while_the_home_was_unknown_is_forgotten_when_that_is_here() -> None:
    crowd, _ = elsewhere(1)
    flows, placement = crowd.supervisor.dispatcher.flows, crowd.supervisor.placement
    left: list[bool] = []

    async def move() -> None:
        crowd.receivers.takes_s["fine"] = 0.3
        await asyncio.sleep(1.2)
        placement.owner = lambda shard_id: None  # type: ignore[method-assign]
        await asyncio.sleep(1)
        left.append(flows.known("a", "vendor") is not None)
        type(flows).own(flows, crowd.supervisor.shards[0])
        left.append(flows.known("a", "vendor") is not None)

    crowd.run(8, move)
    assert left == [True, False]


def test_slots_of_a_dead_node_are_free_again() -> None:
    crowd = Crowd()
    crowd.flows = [Flow("a", "vendor", 0, 0, per_key=FlowLimits(parallelism=1))]
    crowd.keep("t", "fine", 2, flow="vendor")
    other, alive = b"o" * 16, {b"o" * 16}
    membership = crowd.supervisor.membership
    membership.alive = alive.__contains__  # type: ignore[method-assign]

    async def die() -> None:
        (home,) = crowd.supervisor.dispatcher.flows.homes.values()
        rules = [RuleReport("a", "vendor", 1, 1, 1, [KeyReport("vendor", 1, 1, 1, 0)])]
        (answer,) = crowd.supervisor.flows.reported([FlowReport(other, 0, home.epoch, 1, rules)])
        assert answer.known
        await asyncio.sleep(2)
        assert not crowd.receivers.calls
        alive.clear()
        crowd.supervisor.placement.notify()
        await asyncio.sleep(0.01)
        assert len(crowd.receivers.calls) == 1

    crowd.run(5, die)


def test_a_report_to_a_former_home_is_answered_so() -> None:
    crowd = Crowd()

    async def report() -> None:
        (home,) = crowd.supervisor.dispatcher.flows.homes.values()
        answers = crowd.supervisor.flows.reported(
            [FlowReport(b"o" * 16, 0, home.epoch - 1, 1, []), FlowReport(b"o" * 16, 9, home.epoch, 2, [])]
        )
        assert [(each.number, each.known) for each in answers] == [(1, False), (2, False)]

    crowd.run(3, report)


def test_many_keys_are_asked_for_in_turn() -> None:
    crowd, home = elsewhere(0)
    crowd.flows = [Flow("a", "customer:", 0, 0, per_key=FlowLimits(parallelism=1))]
    for number in range(1_200):
        crowd.keep(f"c{number}", "fine", 2, flow=f"customer:{number}")
    home.grants = False
    crowd.run(4)
    asked = [key.key for report in home.reports for rule in report.rules for key in rule.keys if key.wanted]
    assert len(set(asked)) == 1_200
    assert max(sum(key.wanted > 0 for rule in report.rules for key in rule.keys) for report in home.reports) == 500

"""When writes are sent to their owner, how many together, and how they are dated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.support.peers import SECOND, TIMER, Pair

from tocsin.cluster import wire
from tocsin.cluster.wire import PeerWrites, decode_request
from tocsin.model.errors import RequestExpired, ShardMoved, ShardUnavailable
from tocsin.ports.forward import Written


async def test_an_expired_write_is_not_sent(pair: Pair) -> None:
    await pair.meet()
    pair.ours.congested = True
    pair.send("late", budget_us=SECOND)
    pair.send("in time", budget_us=SECOND + 1)
    await pair.turn()
    pair.passes(SECOND)
    pair.ours.congested = False
    pair.link.writable()
    await pair.turn(to_owner=False)
    messages = [decode_request(frame) for frame in pair.ours.sent]
    assert [[op.uuid for op in message.ops] for message in messages if isinstance(message, PeerWrites)] == [
        [b"in time"]
    ]
    assert isinstance(pair.answers["late"], RequestExpired)


async def test_a_message_has_no_more_writes_than_may_be_in_flight(pairs: Callable[..., Pair]) -> None:
    pair = pairs(in_flight_max=2, frame_writes_max=500)
    for name in ("a", "b", "c"):
        pair.send(name)
    await pair.turn()
    assert [write.uuid for write, _ in pair.owned.accepted] == [b"a", b"b"]


async def test_large_writes_are_split_into_several_messages(pairs: Callable[..., Pair]) -> None:
    pair = pairs(frame_fill_bytes=1)
    for name in ("a", "b", "c"):
        pair.send(name)
    await pair.turn(to_owner=False)
    messages = [decode_request(frame) for frame in pair.ours.sent]
    assert [len(message.ops) for message in messages if isinstance(message, PeerWrites)] == [1, 1, 1]


async def test_no_write_is_sent_before_the_first_tick(pair: Pair) -> None:
    """Neither on the first connection nor on a later one."""
    for round_ in ("first", "second"):
        pair.send(round_)
        await pair.turn(to_owner=False, to_asker=False)
        pair.send(f"{round_}, connected")
        await pair.turn(to_owner=False, to_asker=False)
        assert pair.ours.sent == []
        await pair.turn()
        for _, completion in pair.owned.accepted:
            completion.resolve(None)
        pair.owned.accepted.clear()
        await pair.turn()
        assert (pair.answers[round_], pair.answers[f"{round_}, connected"]) == (None, None)
        pair.link.lost("broken")


async def test_a_write_is_dated_by_its_time_of_sending(pairs: Callable[..., Pair]) -> None:
    pair = pairs(message_age_max_us=SECOND)
    await pair.meet()
    pair.passes(3 * SECOND)
    began_us = pair.there.boottime_us()
    pair.send("a", budget_us=4 * SECOND)
    await pair.turn()
    assert [write.deadline_us for write, _ in pair.owned.accepted] == [began_us + 4 * SECOND]


async def test_every_tick_is_answered(pair: Pair) -> None:
    await pair.meet()
    pair.ours.sent.clear()
    assert pair.session is not None
    pair.session._timer.cancel()  # type: ignore[union-attr]
    pair.session._tick()
    await pair.turn(to_owner=False)
    assert [decode_request(frame) for frame in pair.ours.sent] == [PeerWrites(2, 0, [])]


async def test_a_link_closed_while_connecting_stays_closed(pair: Pair) -> None:
    pair.reaches.clear()
    pair.send("a")
    await pair.turn()
    pair.link.close()
    assert isinstance(pair.answers["a"], ShardMoved)
    pair.reaches.set()
    await pair.turn(to_asker=False)
    assert not pair.ours.open
    assert pair.link._sweep is None or pair.link._sweep.cancelled()


async def test_close_settles_writes_in_flight_as_unknown(pair: Pair) -> None:
    pair.send("sent")
    await pair.turn()
    pair.link.close()
    assert type(pair.answers["sent"]) is ShardUnavailable
    assert pair.link.idle


async def test_messages_for_an_unreachable_node_are_dropped(pair: Pair) -> None:
    pair.reachable = False
    for _ in range(100):
        pair.link.notify(wire.OwnershipChanged())
    await pair.turn()
    assert pair.link._unsent == []


async def test_writes_taken_by_a_leaving_owner_are_in_doubt_until_decided(pair: Pair) -> None:
    pair.send("taken")
    await pair.turn()
    assert pair.session is not None
    pair.reachable = False
    pair.session.leave()
    await pair.turn(to_owner=False)
    assert (pair.answers, pair.link.idle, pair.ours.open) == ({}, False, False)
    pair.session.leave()
    assert pair.session.quiet.is_set() is False


async def test_a_session_is_quiet_once_all_writes_are_answered(pair: Pair) -> None:
    pair.send("a")
    pair.send("b")
    await pair.turn()
    assert pair.session is not None
    pair.owned.accepted[0][1].resolve(Written(TIMER, 1))
    await asyncio.sleep(0)
    assert not pair.session.quiet.is_set()
    pair.owned.accepted[1][1].resolve(Written(TIMER, 1))
    await asyncio.sleep(0)
    assert pair.session.quiet.is_set()


async def test_old_ticks_are_forgotten(pair: Pair) -> None:
    await pair.meet()
    assert pair.session is not None
    for _ in range(200):
        await pair.meet()
    assert len(pair.session._ticks) == 64


async def test_results_are_sent_in_messages_of_bounded_length(pairs: Callable[..., Pair]) -> None:
    pair = pairs(frame_writes_max=2)
    for name in "abcde":
        pair.send(name)
    await pair.turn()
    for _, completion in pair.owned.accepted:
        completion.resolve(None)
    await pair.turn(to_asker=False)
    assert len(pair.theirs.sent) == 3


async def test_a_session_voided_before_it_began_sends_nothing(pair: Pair) -> None:
    await pair.meet()
    assert pair.session is not None
    pair.session.void()
    pair.theirs.open, pair.theirs.sent = True, []
    pair.session.begin()
    pair.session.leave()
    assert pair.theirs.sent == []
    assert pair.session._timer is None or pair.session._timer.cancelled()


async def test_a_lost_session_is_reported_once_and_accepts_nothing_more(pair: Pair) -> None:
    ended: list[object] = []
    await pair.meet()
    assert pair.session is not None
    pair.session._ended = ended.append
    pair.send("a")
    await pair.turn(to_owner=False)
    pair.session.lost("broken")
    for frame in pair.ours.sent:
        pair.session.received(frame)
    assert (ended, pair.owned.accepted) == ([pair.session], [])

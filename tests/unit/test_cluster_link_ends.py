"""Writes between two nodes when releases differ, time runs out, or a connection is worth nothing: who waits hears of it."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from tests.support.peers import SECOND, TIMER, Pair

from tocsin.cluster.link import PeerLink
from tocsin.cluster.wire import Answer, Answers, Op, Ops, encode, op_of, read_to_asker, result_of
from tocsin.model.errors import RequestExpired, ShardMoved, ShardUnavailable, Unavailable
from tocsin.model.timer import encode_record
from tocsin.ports.forward import NodeReport, StatisticsReport, Written


async def test_an_answer_that_only_a_later_release_can_read_leaves_nobody_waiting() -> None:
    pair = Pair()
    for name in ("a", "b"):
        pair.send(name)
    await pair.turn()
    newer = Answer(1, 7, b'{"v":99,"of":"a later release"}')
    pair.theirs.send(encode(Answers([newer, Answer(2, 8, encode_record(TIMER))])))
    await pair.turn()
    assert type(pair.answers["a"]) is ShardUnavailable
    assert pair.answers["b"] == Written(TIMER, 8)
    assert (pair.dials, pair.link.idle) == (1, True)
    pair.end()


async def test_a_message_of_a_later_release_costs_neither_side_the_connection() -> None:
    pair = Pair()
    pair.send("a")
    await pair.turn()
    assert pair.session is not None
    pair.session.received(msgspec.msgpack.encode(["new", 1]))
    pair.link.received(msgspec.msgpack.encode(["new", 1]))
    pair.owned.accepted[0][1](Written(TIMER, 7))
    await pair.turn()
    assert pair.answers["a"] == Written(TIMER, 7)
    assert pair.dials == 1
    pair.end()


async def test_a_write_that_the_owner_can_not_read_is_refused_alone() -> None:
    pair = Pair()
    await pair.meet()
    ops = [Op(1, 9, 1, 3, b"n", "default", SECOND, b""), op_of(pair.write("a"), 2, 3, SECOND)]
    pair.ours.send(encode(Ops(1, 0, ops)))
    await pair.turn(to_asker=False)
    assert [write.uuid for write, _ in pair.owned.accepted] == [b"a"]
    (answers,) = [message for message in map(read_to_asker, pair.theirs.sent) if isinstance(message, Answers)]
    assert [(answer.id, type(result_of(answer))) for answer in answers.answers] == [(1, ShardUnavailable)]
    pair.end()


async def test_answers_with_whole_timers_are_sent_in_messages_that_are_taken() -> None:
    pair = Pair(frame_fill_bytes=1_000)
    for number in range(20):
        pair.send(f"{number}")
    await pair.turn()
    large = msgspec.structs.replace(TIMER, payload=msgspec.Raw(b'"' + b"x" * 400 + b'"'))
    for _, settle in pair.owned.accepted:
        settle(Written(large, 7))
    await pair.turn(to_asker=False)
    assert len(pair.theirs.sent) >= 7
    assert max(map(len, pair.theirs.sent)) < 2_000
    await pair.turn()
    assert list(pair.answers.values()) == [Written(large, 7)] * 20
    pair.end()


async def test_what_can_not_be_sent_in_its_time_is_told_so() -> None:
    """The owner has as much as it may have, and answers nothing."""
    pair = Pair(in_flight_max=1)
    pair.send("sent")
    await pair.turn()
    pair.send("waits", budget_us=2 * SECOND)
    pair.send("waits longer", budget_us=4 * SECOND)
    await pair.turn()
    pair.passes(2 * SECOND)
    await pair.meet()
    pair.link._watch()
    assert isinstance(pair.answers.pop("waits"), RequestExpired)
    assert pair.answers == {}
    pair.owned.accepted[0][1](None)
    await pair.turn()
    assert [write.uuid for write, _ in pair.owned.accepted] == [b"sent", b"waits longer"]
    pair.end()


async def test_what_waits_for_a_connection_waits_no_longer_than_its_time() -> None:
    pair = Pair()
    pair.reaches = asyncio.Event()
    pair.send("a", budget_us=SECOND)
    await pair.turn()
    assert (pair.dials, pair.answers) == (1, {})
    assert pair.link._sweep is not None
    pair.passes(SECOND)
    pair.link._watch()
    assert isinstance(pair.answers["a"], RequestExpired)
    pair.end()


async def test_a_connection_that_is_lost_as_it_is_made_leaves_nobody_waiting() -> None:
    pair = Pair()
    made = pair.link._dial

    async def dial(incarnation: bytes, address: str, end: PeerLink) -> None:
        await made(incarnation, address, end)
        if pair.dials == 1:
            pair.theirs.sent.clear()
            end.lost("lost at once")
            pair.send("a")
            # The loop gets to the write before whoever waits for the connection hears of it.
            await asyncio.sleep(0)

    pair.link._dial = dial
    pair.link.look()
    await pair.turn()
    assert pair.dials == 2
    pair.owned.accepted[0][1](None)
    await pair.turn()
    assert pair.answers == {"a": None}
    pair.end()


async def test_a_write_dated_by_a_tick_that_nobody_knows_was_not_done() -> None:
    pair = Pair()
    await pair.meet()
    pair.ours.send(encode(Ops(77, 0, [op_of(pair.write("a"), 1, 3, SECOND)])))
    await pair.turn(to_asker=False)
    assert pair.owned.accepted == []
    (answers,) = [message for message in map(read_to_asker, pair.theirs.sent) if isinstance(message, Answers)]
    assert type(result_of(answers.answers[0])) is ShardMoved
    pair.end()


async def test_a_session_that_is_void_accepts_and_sends_nothing() -> None:
    pair = Pair()
    pair.send("a")
    await pair.turn()
    pair.send("b")
    await pair.turn(to_owner=False)
    assert pair.session is not None
    pair.session.void()
    pair.theirs.open, pair.theirs.sent = True, []
    for frame in pair.ours.sent:
        pair.session.received(frame)
    pair.owned.accepted[0][1](None)
    await asyncio.sleep(0)
    assert [write.uuid for write, _ in pair.owned.accepted] == [b"a"]
    assert pair.theirs.sent == []
    assert pair.session.quiet.is_set()
    pair.end()


async def test_an_asker_that_has_fallen_silent_is_given_up() -> None:
    pair = Pair(peer_timeout_us=2 * SECOND)
    await pair.meet()
    assert pair.session is not None
    pair.passes(4 * SECOND)
    pair.session._tick()
    assert pair.theirs.open
    pair.passes(1)
    pair.session._tick()
    assert not pair.theirs.open
    pair.end()


async def test_garbage_ends_the_connection_on_either_side_and_what_was_sent_is_in_doubt() -> None:
    pair = Pair()
    pair.send("a")
    await pair.turn()
    pair.reachable = False
    pair.link.received(b"\xc1")
    assert not pair.ours.open
    await pair.turn()
    assert (pair.answers, pair.link.idle) == ({}, False)
    assert pair.session is not None
    pair.session.received(b"\xc1")
    assert not pair.theirs.open
    pair.end()


async def test_an_unknown_outcome_is_not_told_for_a_shard_that_nobody_owns_yet() -> None:
    pair = Pair()
    pair.send("a")
    await pair.turn()
    pair.reachable = False
    pair.link.lost("broken")
    pair.map.nobody = True
    pair.link._watch()
    assert pair.answers == {}
    pair.end()


async def test_an_answer_that_never_comes_is_waited_for_no_longer_than_a_commit_may_take() -> None:
    pair = Pair(answer_grace_us=3 * SECOND)
    pair.send("a", budget_us=SECOND)
    await pair.turn()
    pair.passes(4 * SECOND)
    await pair.meet()
    pair.link._watch()
    assert pair.answers == {}
    pair.passes(1)
    await pair.meet()
    pair.link._watch()
    assert type(pair.answers["a"]) is ShardUnavailable
    assert pair.link.idle
    pair.end()


async def test_a_congested_connection_is_sent_nothing_until_it_is_writable() -> None:
    pair = Pair()
    await pair.meet()
    pair.ours.congested = True
    pair.send("a")
    await pair.turn()
    assert pair.owned.accepted == []
    pair.ours.congested = False
    pair.link.writable()
    await pair.turn()
    assert [write.uuid for write, _ in pair.owned.accepted] == [b"a"]
    pair.end()


async def test_questions_are_answered_and_hear_of_a_lost_connection() -> None:
    pair = Pair()
    asking = asyncio.ensure_future(pair.link.ask())
    await pair.turn()
    assert (await asking).release == "1"
    # A release that tells what it counted, and one that doesn't.
    for pair.counted in (StatisticsReport(1, 2, [b"point"], b"present", False), None):
        statistics = asyncio.ensure_future(pair.link.ask_statistics(5))
        await pair.turn()
        assert await statistics == (NodeReport("1", True, None, False, []), pair.counted)
    asking = asyncio.ensure_future(pair.link.ask())
    await pair.turn(to_owner=False)
    pair.reachable = False
    pair.link.lost("broken")
    with pytest.raises(Unavailable, match="broken"):
        await asking
    assert pair.link.idle
    pair.end()

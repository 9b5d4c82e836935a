"""Writes between two nodes when releases differ, deadlines pass or connections fail: every write is settled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec
import pytest
from tests.support.peers import SECOND, TIMER, Pair

from tocsin.cluster import wire
from tocsin.cluster.link import PeerLink
from tocsin.cluster.wire import (
    PeerWrite,
    PeerWrites,
    WriteResult,
    WriteResults,
    decode_reply,
    decode_result,
    encode,
    encode_write,
)
from tocsin.model.errors import RequestExpired, ShardMoved, ShardUnavailable, Unavailable
from tocsin.model.timer import encode_record
from tocsin.ports.forward import Written
from tocsin.ports.observer import PeerLeft, PeerLost


async def test_a_result_that_only_a_later_release_can_decode_is_settled(pair: Pair) -> None:
    for name in ("a", "b"):
        pair.send(name)
    await pair.turn()
    newer = WriteResult(1, 7, b'{"v":99,"of":"a later release"}')
    pair.theirs.send(encode(WriteResults([newer, WriteResult(2, 8, encode_record(TIMER))])))
    await pair.turn()
    assert type(pair.answers["a"]) is ShardUnavailable
    assert pair.answers["b"] == Written(TIMER, 8)
    assert (pair.dials, pair.link.idle) == (1, True)


async def test_an_unknown_message_does_not_end_the_connection(pair: Pair) -> None:
    pair.send("a")
    await pair.turn()
    assert pair.session is not None
    pair.session.received(msgspec.msgpack.encode(["new", 1]))
    pair.link.received(msgspec.msgpack.encode(["new", 1]))
    pair.owned.accepted[0][1].resolve(Written(TIMER, 7))
    await pair.turn()
    assert pair.answers["a"] == Written(TIMER, 7)
    assert pair.dials == 1


async def test_a_write_that_the_owner_cannot_decode_is_refused_alone(pair: Pair) -> None:
    await pair.meet()
    ops = [PeerWrite(1, 9, 1, 3, b"n", "default", SECOND, b""), encode_write(pair.write("a"), 2, 3, SECOND)]
    pair.ours.send(encode(PeerWrites(1, 0, ops)))
    await pair.turn(to_asker=False)
    assert [write.uuid for write, _ in pair.owned.accepted] == [b"a"]
    (answers,) = [message for message in map(decode_reply, pair.theirs.sent) if isinstance(message, WriteResults)]
    assert [(answer.id, type(decode_result(answer))) for answer in answers.answers] == [(1, ShardUnavailable)]


async def test_results_with_whole_timers_stay_within_the_message_limit(pairs: Callable[..., Pair]) -> None:
    pair = pairs(frame_fill_bytes=1_000)
    for number in range(20):
        pair.send(f"{number}")
    await pair.turn()
    large = msgspec.structs.replace(TIMER, payload=msgspec.Raw(b'"' + b"x" * 400 + b'"'))
    for _, completion in pair.owned.accepted:
        completion.resolve(Written(large, 7))
    await pair.turn(to_asker=False)
    assert len(pair.theirs.sent) >= 7
    assert max(map(len, pair.theirs.sent)) < 2_000
    await pair.turn()
    assert list(pair.answers.values()) == [Written(large, 7)] * 20


async def test_a_write_that_cannot_be_sent_before_its_deadline_expires(pairs: Callable[..., Pair]) -> None:
    """The owner has as many writes in flight as allowed and answers none."""
    pair = pairs(in_flight_max=1)
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
    pair.owned.accepted[0][1].resolve(None)
    await pair.turn()
    assert [write.uuid for write, _ in pair.owned.accepted] == [b"sent", b"waits longer"]


async def test_a_write_waiting_for_a_connection_expires_at_its_deadline(pair: Pair) -> None:
    pair.reaches = asyncio.Event()
    pair.send("a", budget_us=SECOND)
    await pair.turn()
    assert (pair.dials, pair.answers) == (1, {})
    assert pair.link._sweep is not None
    pair.passes(SECOND)
    pair.link._watch()
    assert isinstance(pair.answers["a"], RequestExpired)


async def test_writes_on_a_connection_lost_at_once_are_settled(pair: Pair) -> None:
    made = pair.link._dial

    async def dial(incarnation: bytes, address: str, end: PeerLink) -> None:
        await made(incarnation, address, end)
        if pair.dials == 1:
            pair.theirs.sent.clear()
            end.lost("lost at once")
            pair.send("a")
            # The loop handles the write before the task that waits for the connection.
            await asyncio.sleep(0)

    pair.link._dial = dial
    pair.link.notify(wire.OwnershipChanged())
    await pair.turn()
    assert pair.dials == 2
    pair.owned.accepted[0][1].resolve(None)
    await pair.turn()
    assert pair.answers == {"a": None}


async def test_a_write_dated_by_an_unknown_tick_is_refused(pair: Pair) -> None:
    await pair.meet()
    pair.ours.send(encode(PeerWrites(77, 0, [encode_write(pair.write("a"), 1, 3, SECOND)])))
    await pair.turn(to_asker=False)
    assert pair.owned.accepted == []
    (answers,) = [message for message in map(decode_reply, pair.theirs.sent) if isinstance(message, WriteResults)]
    assert type(decode_result(answers.answers[0])) is ShardMoved


async def test_a_void_session_accepts_and_sends_nothing(pair: Pair) -> None:
    pair.send("a")
    await pair.turn()
    pair.send("b")
    await pair.turn(to_owner=False)
    assert pair.session is not None
    pair.session.void()
    pair.theirs.open, pair.theirs.sent = True, []
    for frame in pair.ours.sent:
        pair.session.received(frame)
    pair.owned.accepted[0][1].resolve(None)
    await asyncio.sleep(0)
    assert [write.uuid for write, _ in pair.owned.accepted] == [b"a"]
    assert pair.theirs.sent == []
    assert pair.session.quiet.is_set()


async def test_a_silent_requesting_node_is_disconnected(pairs: Callable[..., Pair]) -> None:
    pair = pairs(peer_timeout_us=2 * SECOND)
    await pair.meet()
    assert pair.session is not None
    pair.passes(4 * SECOND)
    pair.session._tick()
    assert pair.theirs.open
    pair.passes(1)
    pair.session._tick()
    assert not pair.theirs.open


async def test_garbage_ends_the_connection_on_either_side_and_leaves_sent_writes_in_doubt(pair: Pair) -> None:
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


async def test_an_unknown_outcome_is_not_reported_while_the_shard_has_no_owner(pair: Pair) -> None:
    pair.send("a")
    await pair.turn()
    pair.reachable = False
    pair.link.lost("broken")
    pair.map.nobody = True
    pair.link._watch()
    assert pair.answers == {}


async def test_a_missing_result_is_unknown_after_the_answer_grace(pairs: Callable[..., Pair]) -> None:
    pair = pairs(answer_grace_us=3 * SECOND)
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


async def test_nothing_is_sent_on_a_congested_connection_until_it_is_writable(pair: Pair) -> None:
    await pair.meet()
    pair.ours.congested = True
    pair.send("a")
    await pair.turn()
    assert pair.owned.accepted == []
    pair.ours.congested = False
    pair.link.writable()
    await pair.turn()
    assert [write.uuid for write, _ in pair.owned.accepted] == [b"a"]


async def test_requests_are_answered_and_fail_with_a_lost_connection(pair: Pair) -> None:
    asking = asyncio.ensure_future(pair.link.ask(wire.PeerReport, wire.ReportRequest))
    await pair.turn()
    assert (await asking).report.release == "1"
    asking = asyncio.ensure_future(pair.link.ask(wire.PeerReport, wire.ReportRequest))
    await pair.turn(to_owner=False)
    pair.reachable = False
    pair.link.lost("broken")
    with pytest.raises(Unavailable, match="broken"):
        await asking
    assert pair.link.idle


def _losses(pair: Pair) -> list[str]:
    return [event.reason for event in pair.events if isinstance(event, PeerLost)]


async def test_an_outage_is_reported_when_it_begins_and_every_thirty_seconds_while_connecting_fails(pair: Pair) -> None:
    pair.send("in doubt", budget_us=100 * SECOND)
    await pair.turn()
    pair.reachable = False
    pair.link.lost("broken")

    async def fails_again() -> None:
        dials = pair.dials
        while pair.dials < dials + 3:
            await pair.turn()

    await fails_again()
    assert _losses(pair) == ["broken"]
    pair.passes(30 * SECOND)
    await fails_again()
    assert _losses(pair) == ["broken", "connection refused"]
    pair.reachable = True
    while not pair.link.idle:
        await pair.turn()
    pair.reachable = False
    pair.link.lost("broken again")
    assert _losses(pair) == ["broken", "connection refused", "broken again"]


async def test_a_node_that_stops_in_order_is_not_lost(pair: Pair) -> None:
    pair.send("in doubt")
    await pair.turn()
    pair.reachable = False
    assert pair.session is not None
    pair.session.leave()
    dials = pair.dials
    while pair.dials < dials + 3:
        await pair.turn()
        pair.passes(60 * SECOND)
    assert [type(event).__name__ for event in pair.events if type(event).__name__.startswith("Peer")] == [
        "PeerConnected",
        "PeerLeft",
    ]
    assert PeerLeft("there").severity() == logging.INFO

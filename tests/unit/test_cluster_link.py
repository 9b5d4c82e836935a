"""Writes between two nodes, and how they are settled when the connection fails: links and sessions without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from msgspec import structs
from tests.support.completions import Noted, complete
from tests.support.peers import SECOND, TIMER, Pair

from tocsin.cluster import wire
from tocsin.cluster.wire import decode_reply, decode_request
from tocsin.model.errors import Overloaded, RequestExpired, ShardMoved, ShardUnavailable, TimerNotFound
from tocsin.ports.forward import FlowCounts, RowPlace, Whereabouts, Written
from tocsin.ports.observer import WritesSent


async def test_concurrent_writes_are_sent_together_and_answered_one_by_one(pair: Pair) -> None:
    for name in ("a", "b", "c"):
        pair.send(name)
    await pair.turn(to_owner=False)
    frames = [decode_request(frame) for frame in pair.ours.sent]
    assert [len(frame.ops) for frame in frames] == [3]
    assert [event for event in pair.events if isinstance(event, WritesSent)] == [WritesSent(3)]
    await pair.turn()
    for write, completion in pair.owned.accepted:
        complete(completion, Written(write.timer, 7) if write.uuid != b"b" else TimerNotFound("none"))
    await pair.turn()
    assert pair.answers["a"] == Written(TIMER, 7)
    assert isinstance(pair.answers["b"], TimerNotFound)
    assert pair.link.idle


async def test_the_result_of_a_create_does_not_repeat_the_timer(pair: Pair) -> None:
    pair.send("a")
    await pair.turn()
    ((write, completion),) = pair.owned.accepted
    # The owner has its own copy and identifies it.
    write.timer.firing = "3-1a"
    completion.resolve(Written(write.timer, 7))
    await pair.turn(to_asker=False)
    ((answer,),) = (decode_reply(frame).answers for frame in pair.theirs.sent)
    assert not answer.record
    await pair.turn()
    assert pair.answers["a"] == Written(structs.replace(TIMER, firing="3-1a"), 7)


async def test_an_unsent_write_may_go_elsewhere_at_once(pair: Pair) -> None:
    pair.reachable = False
    pair.send("a")
    await pair.turn()
    assert isinstance(pair.answers["a"], ShardMoved)


async def test_an_unknown_outcome_is_reported_once_the_shard_has_a_newer_epoch(pair: Pair) -> None:
    pair.send("a")
    await pair.turn()
    pair.reachable = False
    pair.link.lost("broken")
    pair.link._watch()
    assert pair.answers == {}
    pair.map.epoch = 4
    pair.link._watch()
    assert type(pair.answers["a"]) is ShardUnavailable


async def test_an_unknown_outcome_is_reported_when_the_deadline_has_passed(pair: Pair) -> None:
    pair.send("a")
    await pair.turn()
    pair.reachable = False
    pair.link.lost("broken")
    pair.passes(10 * SECOND - 1)
    pair.link._watch()
    assert pair.answers == {}
    pair.passes(1)
    pair.link._watch()
    assert type(pair.answers["a"]) is ShardUnavailable


async def test_an_unknown_outcome_is_reported_when_a_new_connection_voids_the_former(pair: Pair) -> None:
    pair.send("a")
    await pair.turn(to_owner=False)
    unread, former = pair.ours.sent, pair.session
    pair.link.lost("broken")
    assert pair.answers == {}
    await pair.turn()
    assert pair.dials == 2
    assert type(pair.answers["a"]) is ShardUnavailable
    assert former is not None
    for frame in unread:
        former.received(frame)
    assert pair.owned.accepted == []


async def test_an_old_unread_write_is_refused(pairs: Callable[..., Pair]) -> None:
    pair = pairs(message_age_max_us=2 * SECOND)
    pair.send("a", budget_us=4 * SECOND)
    pair.send("b", budget_us=1 * SECOND)
    await pair.turn(to_owner=False)
    pair.passes(1 * SECOND)
    await pair.turn()
    assert [(write.uuid, write.deadline_us) for write, _ in pair.owned.accepted] == [(b"a", 904 * SECOND)]
    assert isinstance(pair.answers["b"], RequestExpired)
    pair.send("c")
    await pair.turn(to_owner=False)
    pair.passes(2 * SECOND + 1)
    await pair.turn()
    assert isinstance(pair.answers["c"], ShardMoved)


async def test_a_write_is_accepted_once_and_only_in_the_epoch_that_it_names(pair: Pair) -> None:
    await pair.meet()
    asking = asyncio.create_task(pair.link.ask(wire.PeerReport, wire.ReportRequest))
    await asyncio.sleep(0)
    pair.send("a")
    await pair.turn(to_owner=False)
    # The request is repeated as well: it must not make older writes count as new ones.
    pair.ours.sent *= 2
    await pair.turn()
    await asking
    assert len(pair.owned.accepted) == 1
    pair.owned.epoch = 4
    pair.send("b")
    await pair.turn()
    assert isinstance(pair.answers["b"], ShardMoved)


async def test_a_stopping_owner_reports_which_writes_it_has_not_processed(pair: Pair) -> None:
    pair.send("a")
    await pair.turn()
    pair.send("b")
    await pair.turn(to_owner=False)
    assert pair.session is not None
    assert not pair.session.quiet.is_set()
    pair.owned.accepted[0][1].resolve(Written(TIMER, 7))
    pair.reachable = False
    pair.session.leave()
    await pair.turn(to_owner=False)
    assert pair.answers["a"] == Written(TIMER, 7)
    assert isinstance(pair.answers["b"], ShardMoved)


async def test_a_silent_connection_is_closed(pairs: Callable[..., Pair]) -> None:
    pair = pairs(peer_timeout_us=2 * SECOND)
    pair.send("a")
    await pair.turn()
    pair.reachable = False
    pair.passes(2 * SECOND + 1)
    pair.link._watch()
    assert not pair.ours.open


async def test_queued_writes_and_writes_in_flight_are_bounded(pairs: Callable[..., Pair]) -> None:
    pair = pairs(send_queue_max=3, in_flight_max=2, frame_writes_max=1)
    for name in ("a", "b", "c"):
        pair.send(name)
    try:
        pair.send("d")
    except Overloaded as error:
        assert "send_queue_max" in str(error)
    else:
        raise AssertionError("a fourth was taken")
    await pair.turn()
    assert [write.uuid for write, _ in pair.owned.accepted] == [b"a", b"b"]
    pair.owned.accepted[0][1].resolve(None)
    await pair.turn()
    assert [write.uuid for write, _ in pair.owned.accepted] == [b"a", b"b", b"c"]


async def test_a_write_in_an_unknown_namespace_is_accepted_once_the_owner_has_read_it(pair: Pair) -> None:
    pair.owned.stored_version = 2
    pair.owned.reads.clear()
    for name, version in (("known", 1), ("changed", 2)):
        write = pair.write(name)._replace(namespace_version=version)
        pair.link.send(write, 3, Noted(partial(pair.answers.__setitem__, name)))
    await pair.turn()
    assert [write.uuid for write, _ in pair.owned.accepted] == [b"known"]
    pair.owned.reads.set()
    await pair.turn()
    assert [(write.uuid, write.namespace_version) for write, _ in pair.owned.accepted] == [
        (b"known", 1),
        (b"changed", 2),
    ]


async def test_a_write_waiting_for_its_namespace_is_void_with_its_connection(pair: Pair) -> None:
    """The client may already know that the outcome is unknown, and have written again."""
    pair.owned.reads.clear()
    pair.link.send(pair.write("a")._replace(namespace_version=2), 3, Noted(partial(pair.answers.__setitem__, "a")))
    await pair.turn()
    pair.link.lost("broken")
    await pair.turn()
    assert type(pair.answers["a"]) is ShardUnavailable
    pair.owned.reads.set()
    await pair.turn()
    assert pair.owned.accepted == []


async def test_the_owner_reports_where_timers_are(pair: Pair) -> None:
    timers = [(1, b"u" * 16), (2, b"v" * 16)]
    asked = asyncio.ensure_future(pair.link.ask(wire.TimersLocated, lambda number: wire.LocateTimers(number, timers)))
    await pair.turn()
    assert (await asked).whereabouts == [Whereabouts(RowPlace.WINDOW), None]


async def test_a_node_reports_what_it_has_of_flows(pair: Pair) -> None:
    questions = (partial(wire.CountFlows, namespace=name) for name in ("default", "other"))
    asked = [asyncio.ensure_future(pair.link.ask(wire.FlowsCounted, question)) for question in questions]
    await pair.turn()
    assert [(await each).counts for each in asked] == [{"customer:": FlowCounts(1, 2)}, {}]


async def test_a_node_confirms_once_it_has_read_the_namespaces(pair: Pair) -> None:
    pair.owned.reads.clear()
    asked = asyncio.ensure_future(pair.link.ask(wire.NamespacesRefreshed, wire.RefreshNamespaces))
    await pair.turn()
    assert not asked.done()
    pair.owned.reads.set()
    await pair.turn()
    await asked

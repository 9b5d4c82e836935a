"""Which node gets a write, without a network."""

from __future__ import annotations

import json
import logging

from tests.support.cases import each

from steps import BASE, World, problem, reply, timer
from tocsin_client import CreateTimer, errors
from tocsin_client._core import flows
from tocsin_client._core.batches import create_many
from tocsin_client._core.ids import shard_of

SHARDS = 8
NODES = [f"http://node{i}.example" for i in range(2)]
LOST = errors.TransportError("reset", maybe_done=True)
UNSENT = errors.TransportError("refused", maybe_done=False)
NAMES = reply(200, {"namespaces": [{"name": "n", "numShards": SHARDS}]})


def view(owners=None, **changes):
    nodes = [{"apiUrl": url, "alive": True, "leaving": False, "skewed": False} for url in NODES]
    for node in changes.pop("nodes", []):
        nodes[node] |= changes
    return reply(200, {"totalShards": SHARDS, "nodes": nodes, "owners": owners or [i % 2 for i in range(SHARDS)]})


def shard(timer_id):
    return shard_of("n", timer_id, SHARDS, SHARDS)


def created(timer_id="a", **headers):
    return reply(200, timer(timer_id=timer_id, shard_id=shard(timer_id)), **headers)


def create(world, timer_id="a", namespace="n"):
    """Creates a timer; returns where it was sent."""
    before = len(world.sent)
    world.run(
        flows.create_timer(world.session, CreateTimer(namespace=namespace, id=timer_id, callback_url="http://x/"))
    )
    return [sent.url.partition("/api")[0] for sent in world.sent[before:] if sent.url.endswith("create")]


def owner(timer_id="a"):
    return NODES[shard(timer_id) % 2]


def test_writes_go_to_owners():
    world = World(view(), NAMES, *[created(name) for name in "abcd"], routing="owners")
    assert [create(world, name) for name in "abcd"] == [[owner(name)] for name in "abcd"]
    assert {owner(name) for name in "abcd"} == set(NODES)


def test_reads_go_to_the_given_url():
    world = World(reply(200, timer()), routing="owners")
    from tocsin_client._generated.models import Timer, TimerName

    name = TimerName(namespace="n", timer_id="a").to_json()
    world.run(flows.ask(world.session, "getTimer", Timer.from_json, name))
    assert world.sent[0].url.startswith(BASE)


def test_retries_go_to_the_given_url():
    world = World(view(), NAMES, LOST, created(), routing="owners")
    assert create(world) == [owner(), BASE]


def test_a_batch_has_a_request_for_each_owner_and_its_retries_go_to_the_given_url():
    def answered(send):
        names = [each["id"] for each in json.loads(send.body)["timers"]]
        refused = {"error": {"error": "SHARD_UNAVAILABLE", "message": "m", "status": 503, "errors": []}}
        owned = BASE in send.url or "a" not in names
        return reply(
            200, {"results": [{"timer": timer(timer_id=n, shard_id=shard(n))} if owned else refused for n in names]}
        )

    world = World(view(), NAMES, *[answered] * 3, routing="owners")
    timers = [CreateTimer(namespace="n", id=name, callback_url="http://x/") for name in "abcd"]
    results = world.run(create_many(world.session, timers))
    assert [result.unwrap().id for result in results] == list("abcd")
    batches = [sent.url.partition("/api")[0] for sent in world.sent if "batch" in sent.url]
    assert batches[0] == owner("a") and sorted(batches) == sorted([*NODES, BASE])


@each("failure", [UNSENT, LOST, problem(503, "SHARD_UNAVAILABLE")])
def test_a_node_that_failed_is_avoided_for_five_seconds_and_the_map_read_again(failure):
    world = World(view(), NAMES, failure, created(), request_s=0.0, routing="owners")
    create(world)
    world.time += 2
    world.script = [view(), NAMES, created()]
    assert create(world) == [BASE]
    world.time += 3.5
    world.script = [created()]
    assert create(world) == [owner()]


def test_a_forwarded_write_has_the_map_read_again_at_most_once_a_second():
    world = World(view(), NAMES, created(tocsin_forwarded="1"), routing="owners")
    create(world)
    world.script = [created(tocsin_forwarded="1")]
    create(world)  # within the second
    world.time += 1.1
    world.script = [view(), NAMES, created()]
    create(world)
    assert not world.script


def test_the_map_is_renewed_while_writing():
    world = World(view(), NAMES, created(), created(), routing="owners")
    create(world)
    world.time += 29
    create(world)
    world.time += 2
    world.script = [reply(304), NAMES, created()]
    assert create(world) == [owner()]
    assert [sent.headers.get("if-none-match") for sent in world.sent if "view=owners" in sent.url] == [None, None]


def test_an_unchanged_map_is_not_sent_again():
    first = reply(200, {"totalShards": SHARDS, "nodes": [], "owners": [None] * SHARDS}, etag='"7"')
    world = World(first, NAMES, created(), routing="owners")
    create(world)
    world.time += 40
    world.script = [reply(304), NAMES, created()]
    assert create(world) == [BASE]
    assert world.sent[-3].headers["if-none-match"] == '"7"'


@each(
    "seen",
    [
        view(owners=[None] * SHARDS),
        view(nodes=[0, 1], alive=False),
        view(nodes=[0, 1], leaving=True),
        view(nodes=[0, 1], skewed=True),
        view(nodes=[0, 1], apiUrl="http://both.example"),
        view(nodes=[0, 1], apiUrl=None),
    ],
)
def test_the_given_url_where_no_node_serves(seen):
    world = World(seen, NAMES, created(), routing="owners")
    assert create(world) == [BASE]


def test_the_given_url_for_a_namespace_that_was_not_seen():
    world = World(view(), NAMES, created(), routing="owners")
    assert create(world, namespace="new") == [BASE]


@each("refusal", [problem(403, "FORBIDDEN"), problem(404, "ROUTE_NOT_FOUND"), problem(400, "INVALID_INPUT")])
def test_a_server_that_shows_no_owners_is_not_asked_again(refusal):
    world = World(refusal, NAMES, created(), created(), routing="owners")
    assert create(world) == [BASE]
    world.time += 100
    assert create(world) == [BASE]


def test_a_map_that_can_not_be_read_is_read_again_later():
    world = World(LOST, NAMES, created(), routing="owners")
    assert create(world) == [BASE]
    world.time += 1.1
    world.script = [view(), NAMES, created()]
    assert create(world) == [owner()]


@each(
    "foreign",
    [view([2] * SHARDS), view([-1] * SHARDS), view([0] * (SHARDS - 1)), view(["0"] * SHARDS)],
)
def test_a_map_that_is_none_switches_routing_off(foreign):
    world = World(foreign, NAMES, created(), created(), routing="owners")
    assert create(world) == [BASE]
    world.time += 100
    assert create(world) == [BASE]


def test_a_fork_while_the_map_is_read():
    """The process that was forked reads it itself."""
    world = World(view(), NAMES, created(), routing="owners")
    reading = flows.create_timer(world.session, CreateTimer(namespace="n", id="a", callback_url="http://x/"))
    next(reading)
    world.session.router.renew_in_child()
    assert create(world) == [owner()]


def test_another_placement_switches_routing_off_with_one_warning(caplog):
    moved = reply(200, timer(shard_id=shard("a") + 1))
    world = World(view(), NAMES, moved, moved, moved, routing="owners")
    with caplog.at_level(logging.WARNING, "tocsin_client"):
        assert [create(world) for _ in range(3)] == [[owner()], [BASE], [BASE]]
    assert len(caplog.records) == 1

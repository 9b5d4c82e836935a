"""Faults and operations injected during a run, and the healing at its end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from tocsin.model.errors import Conflict, NamespaceExists, Unavailable
from tocsin.model.ids import timer_uuid
from tocsin.ports.store import StoredRow, generation
from tocsin.timers.service import TimerService

from .ledger import NAMESPACE_POLICY
from .node import NodeGone

if TYPE_CHECKING:
    from .node import Node
    from .world import World

SECOND = 1_000_000
#: How long a node stays frozen that nobody notices, in seconds.
_OVERSLEPT_S_MAX = 9.0
#: How long a replaced secret continues to sign.
GRACE_US = 5 * SECOND


class Chaos:
    """Injects faults in faulty runs; in the others only what a healthy service meets: pauses, silent hosts, bad rows."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = world.rng("chaos")
        self._tasks: list[asyncio.Task[None]] = []
        self._bad_rows = 0
        self._ending: set[Node] = set()
        # One change of each kind at a time for each namespace, so that the last acknowledged one counts.
        self._turns: dict[tuple[str, str], asyncio.Lock] = {}
        self._secrets: dict[str, int] = {}
        for node in world.nodes:
            store_faults = world.faulty and not world.storm
            node.link.fault_rate = self._rng.choice((0.0, 0.01, 0.05, 0.15)) if store_faults else 0.0
            node.link.slow_rate = self._rng.choice((0.0, 0.02, 0.2)) if store_faults else 0.0
            if world.faulty:
                rng = world.rng("weak store", node.name)
                node.link.claims_held_s = rng.choice((0.0, 0.3, 4.0))
                node.link.twice_rate = rng.choice((0.0, 0.1))
        if world.faulty:
            world.store.spread_rate = world.rng("weak store").choice((0.0, 0.02, 0.2))
            world.store.break_rate = world.rng("weak store", "breaks off").choice((0.0, 0.02, 0.1))
            world.store.apart_s = world.rng("weak store", "reads").choice((0.0, 0.3))
            world.network.slow_rate = self._rng.choice((0.0, 0.02, 0.2))
            world.network.repeat_rate = self._rng.choice((0.0, 0.1))

    async def run(self, until_s: float) -> None:
        """Injects one fault after another."""
        rng, world = self._rng, self._world
        founding_s = self._world.rng("founding").uniform(0.0, 15.0)
        self._tasks.append(world.loop.create_task(self._found_namespace(world.namespaces[-1], founding_s)))
        healthy = (self._pause_namespace, self._change_secret, self._silence_host, self._bad_row)
        faults = (
            self._crash, self._restart, self._freeze, self._freeze, self._cut, self._cut, self._cut,
            self._jump, self._drift, self._poison, self._blur, self._part, self._part, self._break,
            self._leave_unread, self._leave_unread, self._leave_unread, self._change_and_go,
            self._blind,
        )  # fmt: skip
        storm = (
            *(self._leave_unread,) * 3, *(self._blur,) * 3, self._break, self._part, self._freeze,
        )  # fmt: skip
        if not world.faulty and len(world.nodes) > 1:
            self._tasks.append(world.loop.create_task(self._hand_over(until_s)))
        if world.faulty and len(world.nodes) > 1 and world.rng("oversleep").random() < 0.4:
            self._tasks.append(world.loop.create_task(self._oversleep(until_s)))
        while world.loop.time() < until_s:
            await asyncio.sleep(rng.uniform(0.1, 1.5) if world.storm else rng.uniform(0.2, 6.0))
            kinds = storm if world.storm else healthy + faults if world.faulty else healthy
            self._tasks.append(world.loop.create_task(rng.choice(kinds)(rng.choice(world.nodes))))

    async def heal(self) -> None:
        """Heals all faults and waits for what is still under way."""
        world = self._world
        world.record("healing")
        for node in world.nodes:
            node.link.fault_rate = node.link.slow_rate = 0.0
            node.link.claims_held_s = node.link.twice_rate = 0.0
            node.link.poison = set()
        world.store.spread_rate = world.store.break_rate = world.store.apart_s = 0.0
        world.network.slow_rate = world.network.repeat_rate = 0.0
        await asyncio.gather(*self._tasks)
        for node in world.nodes:
            node.link.fault_rate = 0.0
            node.link.cut = ""
            node.link.blind = False
            node.thaw()
            node.clock.correct()
        world.network.cuts.clear()
        for host in world.broken_hosts:
            world.answering_since_us[host] = world.true_us()
        world.broken_hosts.clear()
        for name in world.paused_namespaces.copy():
            await self._set_paused(name, False)
        world.healed = True
        world.all_healed.set()
        world.healed_at_us = world.true_us()
        world.record("healed")

    # ------------------------------------------------------------------ faults

    async def _crash(self, node: Node) -> None:
        if node.supervisor is None or node in self._ending:
            return
        self._ending.add(node)
        await node.crash()
        await asyncio.sleep(self._rng.choice((0.0, 1.0, 8.0)))
        node.start()
        self._ending.discard(node)

    async def _restart(self, node: Node) -> None:
        if node.supervisor is None or node in self._ending:
            return
        self._ending.add(node)
        await node.close()
        await asyncio.sleep(self._rng.uniform(0, 3))
        node.start()
        self._ending.discard(node)

    async def _freeze(self, node: Node) -> None:
        if node.frozen:
            return
        node.freeze()
        self._world.record("freeze", node.name)
        await asyncio.sleep(self._rng.choice((0.5, 3.5, 12.0)))
        self._world.record("thaw", node.name)
        node.thaw()

    async def _oversleep(self, until_s: float) -> None:
        """Freezes nodes, each until another one's claim of its shard has compared its counter and is about to be written."""
        world, rng = self._world, self._world.rng("oversleep", "nodes")
        while world.loop.time() < until_s:
            await asyncio.sleep(rng.uniform(1.0, 8.0))
            node = rng.choice(world.nodes)
            if node.frozen:
                continue
            others = [other.link for other in world.nodes if other is not node]
            for link in others:
                link.claims_await_owner, link.claims_waiting = True, 0
            node.freeze()
            world.record("freeze", node.name)
            end = world.loop.time() + _OVERSLEPT_S_MAX
            while world.loop.time() < end and not any(link.claims_waiting for link in others):  # noqa: ASYNC110 -- virtual
                await asyncio.sleep(0.1)
            for link in others:
                link.claims_await_owner = False
            # It is slow at first, so that no refused commit shows it soon what it has lost.
            node.link.commits_held_until_s = world.loop.time() + rng.choice((0.0, 1.0, 2.9))
            world.record("thaw", node.name)
            node.thaw()

    async def _cut(self, node: Node) -> None:
        node.link.cut = self._rng.choice(("refused", "silent", "deaf"))
        self._world.record("cut", node.name, node.link.cut)
        await asyncio.sleep(self._rng.choice((0.3, 2.9, 4.0, 12.0)))
        node.link.cut = ""
        self._world.record("uncut", node.name)

    async def _part(self, node: Node) -> None:
        """Cuts the link between the node and another; both still reach the store."""
        world = self._world
        pair = frozenset((node.name, self._rng.choice(world.nodes).name))
        world.network.cuts.add(pair)
        world.record("parted", *sorted(pair))
        await asyncio.sleep(self._rng.choice((0.3, 2.5, 12.0)))
        world.network.cuts.discard(pair)
        world.record("joined", *sorted(pair))

    async def _break(self, node: Node) -> None:
        """Breaks connections; sometimes the nodes can't connect again for a while."""
        network = self._world.network
        for pair in network.break_some():
            if self._rng.random() < 0.5:
                network.cuts.add(pair)
                asyncio.get_running_loop().call_later(3.0, network.cuts.discard, pair)

    async def _leave_unread(self, node: Node) -> None:
        seconds = self._rng.choice((0.3, 1.0, 2.0, 5.0, 5.0))
        self._world.record("reads nothing", node.name, seconds)
        self._world.network.leave_unread(node, seconds)

    async def _jump(self, node: Node) -> None:
        offset_us = int(self._rng.choice((-30, -1.2, -0.4, 0.4, 1.2, 30)) * SECOND)
        node.clock.jump(offset_us)
        self._world.record("jump", node.name, offset_us)
        # Most are corrected soon; some are wrong for so long that other nodes take over.
        await asyncio.sleep(self._rng.uniform(0, self._rng.choice((8, 8, 25))))
        node.clock.correct()
        self._world.record("clock corrected", node.name)

    async def _drift(self, node: Node) -> None:
        drift_ppm = self._rng.randint(-5_000, 5_000)
        node.clock.drift(drift_ppm)
        self._world.record("drift", node.name, drift_ppm)

    async def _poison(self, node: Node) -> None:
        clients = self._world.clients
        for other in self._world.nodes:
            other.link.poison = {self._rng.choice(clients).uuid}
        await asyncio.sleep(self._rng.uniform(0.5, 5))
        for other in self._world.nodes:
            other.link.poison = set()

    async def _blur(self, node: Node) -> None:
        former = node.link.fault_rate
        node.link.fault_rate = 0.5
        await asyncio.sleep(self._rng.uniform(0.2, 2))
        node.link.fault_rate = former if not self._world.healed else 0.0

    # ------------------------------------------------------------------ daily life

    async def _hand_over(self, until_s: float) -> None:
        """Restarts the nodes gracefully, the next once the last has joined, as in a rolling restart: no client may notice."""
        world, rng = self._world, self._world.rng("rolling restart")
        while world.loop.time() < until_s:
            await asyncio.sleep(rng.uniform(8, 20))
            node = rng.choice(world.nodes)
            await node.close()
            await asyncio.sleep(rng.uniform(1, 3))
            node.start()

    async def _pause_namespace(self, node: Node) -> None:
        name = self._rng.choice(self._world.namespaces)
        await self._world.exists[name].wait()
        await self._set_paused(name, True)
        await asyncio.sleep(self._rng.uniform(0.5, 8))
        await self._set_paused(name, False)

    async def _set_paused(self, name: str, paused: bool) -> None:
        world = self._world
        async with self._turn(name, "paused"):
            if paused:
                world.paused_namespaces.add(name)
            else:
                world.ledger.paused.discard(name)
            await self._insist(lambda service: service.namespaces.update(name, paused=paused))
            world.record("namespace", name, "paused" if paused else "goes on")
            if paused:
                world.ledger.paused.add(name)
            elif name in world.paused_namespaces:
                world.paused_namespaces.discard(name)
                world.namespaces_unpaused_s = world.loop.time()

    async def _change_secret(self, node: Node) -> None:
        world, name = self._world, self._rng.choice(self._world.namespaces)
        await world.exists[name].wait()
        async with self._turn(name, "secret"):
            number = self._secrets[name] = self._secrets.get(name, 1) + 1

            def change(service: TimerService) -> Coroutine[Any, Any, Any]:
                if number % 2:
                    return service.namespaces.update(name, secret=str(number))
                return service.namespaces.rotate_secret(name, str(number), GRACE_US, force=True)

            await self._insist(change, first=node)
            world.record("namespace", name, "secret", number)
            world.ledger.secret[name] = number

    async def _blind(self, node: Node) -> None:
        """Keeps the node from reading namespaces for longer than their lease, while one of them is paused."""
        node.link.blind = True
        self._world.record("blind", node.name)
        pausing = self._world.loop.create_task(self._pause_namespace(node))
        await asyncio.sleep(self._rng.uniform(5, 25))
        node.link.blind = False
        await pausing

    async def _change_and_go(self, node: Node) -> None:
        """Lets a node change a secret that no other node reads, accept timers, and hand its shards over."""
        cuts = self._world.network.cuts
        pairs = {frozenset((node.name, other.name)) for other in self._world.nodes if other is not node} - cuts
        cuts |= pairs
        changing = self._world.loop.create_task(self._change_secret(node))
        await asyncio.sleep(self._rng.uniform(0.5, 3))
        await self._restart(node)
        cuts -= pairs
        await changing

    async def _found_namespace(self, name: str, after_s: float) -> None:
        """Creates a namespace with a secret."""
        world = self._world
        await asyncio.sleep(after_s)

        async def found(service: TimerService) -> None:
            # It exists if an earlier try was done without an answer.
            with contextlib.suppress(NamespaceExists):
                await service.namespaces.create(name, num_shards=world.total_shards, secret="1", retry=NAMESPACE_POLICY)

        await self._insist(found)
        world.record("namespace", name, "founded")
        world.exists[name].set()

    def _turn(self, name: str, kind: str) -> asyncio.Lock:
        return self._turns.setdefault((name, kind), asyncio.Lock())

    async def _insist(
        self, make: Callable[[TimerService], Coroutine[Any, Any, Any]], first: Node | None = None
    ) -> None:
        """Asks one node after another until one has made the change."""
        world = self._world
        while True:
            await asyncio.sleep(self._rng.uniform(0.01, 0.2))
            node, first = first or self._rng.choice(world.nodes), None
            if node.service is None or node.frozen:
                continue
            world.record("changes a namespace", node.name)
            try:
                await node.ask(make(node.service))
            except (Unavailable, Conflict, NodeGone) as error:
                world.record("namespace not changed", node.name, type(error).__name__)
            else:
                return

    async def _silence_host(self, node: Node) -> None:
        host = self._rng.choice(self._world.hosts)
        self._world.broken_hosts.add(host)
        await asyncio.sleep(self._rng.uniform(0.5, 8))
        self._world.broken_hosts.discard(host)
        self._world.answering_since_us[host] = self._world.true_us()

    async def _bad_row(self, node: Node) -> None:
        """Writes an undecodable row, as after a fault of the disk or of another program."""
        world = self._world
        shards = world.store._shards
        if self._bad_rows >= 2 or not shards:
            return
        self._bad_rows += 1
        uuid = timer_uuid("bad", str(self._bad_rows))
        due = world.true_us() + 60 * SECOND
        row = StoredRow(due, uuid, generation(0, bytes(16), self._bad_rows), "bad", str(self._bad_rows), (), b"?")
        shards[self._rng.choice(sorted(shards))].upsert([row])
        world.record("bad row", uuid.hex()[:6], due)

"""One run: clients, nodes, faults and messages in an order that a seed decides, and then the time in which all heals."""

from __future__ import annotations

from collections.abc import Callable, Generator
from random import Random
from typing import Any, TypeVar

from .ledger import Ledger, Violation
from .node import Node
from .rules import Mutant
from .store import Store, Traits
from .values import MEMBER_TIMEOUT, NODE_LEASE, SKEW_MAX, UUIDS, Event, EventKey, Kind

_NODES = 3
#: Until everything has fired after all faults have ended; it takes at most a member's timeout and the latest retry.
_HEALING_ROUNDS_MAX = 300

_T = TypeVar("_T")


class Message:
    """A request of a node to the database, and its answer on the way back."""

    def __init__(
        self,
        node: Node,
        what: tuple[object, ...],
        steps: Generator[bool, None, _T],
        reply: Callable[[_T], None],
    ) -> None:
        self.node = node
        self.incarnation = node.incarnation
        self.what = what
        self.held_until = 0
        self.arrived = False
        self.executed = False
        self.may_be_lost = True
        self._steps: Generator[bool, None, Any] = steps
        self._reply: Callable[[Any], None] = reply
        self._result: Any = None

    @property
    def passes(self) -> bool:
        """Whether the next step can happen while the node is cut off or frozen: what the database has to do by itself."""
        if not self.arrived:
            return not self.node.cut_off
        return not self.executed or not (self.node.cut_off or self.node.frozen)

    def advance(self) -> None:
        """The database's next step."""
        self.arrived = True
        try:
            self.may_be_lost = next(self._steps)
        except StopIteration as end:
            self.executed, self._result = True, end.value

    def answer(self) -> None:
        """Delivers the answer, if the process that asked still runs."""
        if self.node.incarnation == self.incarnation:
            self._reply(self._result)


class World:
    """`run` plays the seed. A tenth of the runs have no faults, and then no call may be repeated."""

    def __init__(self, seed: int, mutant: Mutant | None = None) -> None:
        self.random = random = Random(seed)
        self.mutant = mutant
        self.ticks = 0
        self.trace: list[str] | None = None
        self.ledger = Ledger()
        traits = Traits(random.choice((1, 2, 100)), isolated=random.random() < 0.5, range_delete=random.random() < 0.8)
        self.store = Store(random, traits, mutant)
        self.messages: list[Message] = []
        #: Whether calls are collected and sent together: in each fourth run.
        self.collects = seed % 4 == 3
        #: Whether ends are reported to a sink: in three of sixteen runs, of one in which calls are collected, too.
        self.reports = seed % 16 in (2, 8, 15)
        self._in_sink: set[EventKey] = set()
        self._incarnations = 0
        self._faults = random.random() < 0.9
        self._steps = random.choice((200, 600, 1200))
        # Few timers meet one another more often.
        self._timers = random.choice((2, UUIDS))
        # How many of the nodes' heartbeats reach the database at once.
        self._punctual = random.choice((0.2, 0.9))
        self.nodes = [Node(self, number) for number in range(_NODES)]

    def new_incarnation(self) -> int:
        """Identifies a process."""
        self._incarnations += 1
        return self._incarnations

    def note(self, *words: object) -> None:
        """Adds a line to the trace, if one is kept."""
        if self.trace is not None:
            self.trace.append(f"{self.ticks:5} {' '.join(map(str, words))}")

    def run(self) -> str | None:
        """The promise that was broken, or None."""
        weighted = (
            (self._pass_time, 3),
            (self._client, 10),
            (self._write, 6),
            (self._deliver, 12),
            (self._load, 6),
            (self._fire, 4),
            (self._answer, 3),
            (self._heartbeat, 2),
            (self._claim, 4),
            (self._truncate, 1),
            (self._lose_patience, 1),
            (self._refuse, 1),
            (self._release, 1),
            (self._purge, 1),
            (self._fault, 1),
            *(((self._send_collected, 3),) if self.collects else ()),
            *(((self._publish, 8), (self._fire, 20), (self._answer, 20)) if self.reports else ()),
        )
        # Each run has a character of its own: slow receivers, busy clients, many faults.
        actions = [action for action, weight in weighted for _ in range(weight * self.random.choice((1, 2, 4)))]
        try:
            self._begin()
            for _ in range(self._steps):
                self.random.choice(actions)()
            self._heal()
        except Violation as violation:
            self.note(violation)
            return str(violation)
        return None

    def send(
        self, node: Node, what: tuple[object, ...], steps: Generator[bool, None, _T], reply: Callable[[_T], None]
    ) -> None:
        """Puts a request on its way."""
        self.note(node, "sends", *what)
        message = Message(node, what, steps, reply)
        self._hold_up(message)
        self.messages.append(message)

    def _hold_up(self, message: Message) -> None:
        """Now and then a message takes long, more often where the shard's owner changes."""
        change = message.what[0] in ("claim", "release")
        if self._faults and self.random.random() < (0.15 if change else 0.04):
            message.held_until = self.ticks + self.random.choice((2, 10, NODE_LEASE, 2 * MEMBER_TIMEOUT))

    def check(self) -> None:
        """No acknowledged timer is missing."""
        self.ledger.check_none_lost(self.store.rows.values())

    # ------------------------------------------------------------------ what may happen next

    def _begin(self) -> None:
        self._let_pass(1)
        self.nodes[0].claim()

    def _awake(self) -> Node | None:
        node = self.random.choice(self.nodes)
        return None if node.frozen else node

    def _owner(self) -> Node | None:
        """A node that takes itself for the owner, and is awake."""
        owners = [node for node in self.nodes if node.window is not None and not node.frozen]
        return self.random.choice(owners) if owners else None

    def _pass_time(self) -> None:
        self.ticks += self.random.randint(1, 3)
        if not self._faults or self.random.random() < self._punctual:
            self._let_pass(0)

    def _let_pass(self, ticks: int) -> None:
        """Time in which nothing happens but the heartbeats of the nodes that are well."""
        while True:
            for node in self.nodes:
                if not (node.frozen or node.cut_off):
                    before = len(self.messages)
                    node.heartbeat()
                    for message in self.messages[before:]:
                        self._complete(message)
                    node.observe()
            if not ticks:
                return
            step = min(ticks, 6)
            ticks -= step
            self.ticks += step

    def _complete(self, message: Message) -> None:
        while not message.executed:
            message.advance()
        self.messages.remove(message)
        message.answer()

    def _client(self) -> None:
        random, ledger = self.random, self.ledger
        uuid = random.randrange(self._timers)
        owners = [node for node in self.nodes if node.accepts and not node.frozen]
        if ledger.is_busy(uuid) or not owners:
            return
        node = random.choice(owners)
        at = node.now + random.choice((-3, 0, 2, 5, 5, 10, 10, 20, 40, 60, 90))
        if random.random() < 0.5:
            # So that instants are equal, and the uuid decides.
            at -= at % 5
        chance = random.random()
        kind = Kind.DELETE if chance < 0.25 else Kind.REPLAY if chance < 0.4 else Kind.UPSERT
        write = ledger.issue(kind, uuid, at)
        self.note("client writes", write, "through", node)
        node.accept(write)

    def _write(self) -> None:
        if node := self._owner():
            node.write(exact=self.random.random() < 0.4)

    def _deliver(self) -> None:
        ready = [each for each in self.messages if self.ticks >= each.held_until and each.passes]
        if not ready:
            return
        message = self.random.choice(ready)
        chance = self.random.random() if self._faults else 1.0
        if message.may_be_lost and chance < 0.03:
            self.note("lost:", *message.what)
            self.messages.remove(message)
            return
        if not message.executed:
            message.advance()
            self._hold_up(message)
            self.note("database:", message.node, *message.what)
            self.check()
            return
        self.messages.remove(message)
        if chance >= 0.04:
            self.note("answered:", message.node, *message.what)
            message.answer()

    def _load(self) -> None:
        node = self._owner()
        if node and not node.cut_off:
            node.load()

    def _fire(self) -> None:
        if node := self._owner():
            node.fire()

    def _send_collected(self) -> None:
        if node := self._awake():
            node.send_collected()

    def _publish(self) -> None:
        node = self._owner()
        if node and not node.cut_off:
            node.publish()

    def sink(self, event: Event) -> Generator[bool, None, None]:
        """Takes an event; one that it has is dropped by its id."""
        if event.key not in self._in_sink:
            self._in_sink.add(event.key)
            self.ledger.reports(event)
        yield False

    def _answer(self) -> None:
        if node := self._awake():
            done = self.random.random() < 0.6
            node.answer(None if done else self.random.choice((0, 1, 5, 20, 45)))

    def _heartbeat(self) -> None:
        if node := self._awake():
            node.heartbeat()

    def _claim(self) -> None:
        for node in self.nodes:
            if not (node.frozen or node.cut_off):
                # What it has read may be old.
                if self.random.random() < 0.6:
                    node.observe()
                node.claim()

    def _truncate(self) -> None:
        window = self.random.choice(self.nodes).window
        if window is not None and len(window.rows) > 1:
            window.truncate(self.random.randrange(len(window.rows)))

    def _lose_patience(self) -> None:
        node = self._awake()
        if node and self._faults and self.random.random() < 0.6:
            node.give_up_waiting()

    def _refuse(self) -> None:
        node = self._owner()
        if node and node.window:
            waiting = [op for op in node.window.pending if op.by_client]
            if waiting and self.random.random() < 0.3:
                node.window.refuse(self.random.choice(waiting))

    def _release(self) -> None:
        node = self._awake()
        if node and (node.draining or self.random.random() < 0.1):
            node.release()

    def _purge(self) -> None:
        if self.random.random() < 0.3:
            self.store.history.clear()

    def _fault(self) -> None:
        random = self.random
        if not self._faults or random.random() < 0.5:
            return
        node, chance = random.choice(self.nodes), random.random()
        if chance < 0.2:
            self._stand_still_during_claim()
            return
        if chance < 0.4:
            if random.random() < 0.6:
                node.frozen = True
            else:
                node.cut_off = True
            if random.random() < 0.5:
                self._let_pass(random.randint(NODE_LEASE, MEMBER_TIMEOUT + 10))
        elif chance < 0.8:
            node.frozen = node.cut_off = False
        elif chance < 0.9:
            self._let_pass(random.randint(1, MEMBER_TIMEOUT))
        elif chance < 0.95:
            node.restart()
        else:
            node.skew = random.randint(-SKEW_MAX, SKEW_MAX)
        self.note("fault:", node, "frozen" if node.frozen else "", "cut off" if node.cut_off else "", node.skew)

    def _stand_still_during_claim(self) -> None:
        """The owner does nothing until another node is about to own the shard, and then goes on."""
        owner = next((node for node in self.nodes if node.incarnation == self.store.owner), None)
        if owner is None:
            return
        if self.random.random() < 0.5:
            owner.heartbeat()
            self._deliver()
        for node in self.nodes:
            node.frozen, node.cut_off = node is owner, False
        self.note("fault:", owner, "stands still")
        self._let_pass(self.random.randint(MEMBER_TIMEOUT, MEMBER_TIMEOUT + 10))
        for node in self.nodes:
            if node is not owner:
                node.claim()
        for _ in range(self.random.randrange(4)):
            self._deliver()
        owner.frozen = False
        self.note("fault:", owner, "goes on")

    # ------------------------------------------------------------------ the end

    def _heal(self) -> None:
        self.note("all heals")
        self._faults = False
        for node in self.nodes:
            node.frozen = node.cut_off = False
            node.skew = 0
        for _ in range(_HEALING_ROUNDS_MAX):
            stored = self.store.rows or self.store.events
            if not stored and not self.messages and all(n.window is None or n.window.idle for n in self.nodes):
                break
            self.ticks += 2
            for message in self.messages[:]:
                self._complete_with_others(message)
            for node in self.nodes:
                self._work(node)
            self.check()
        self.ledger.check_all_fired(self.store.rows.values())
        if self.store.events:
            raise Violation(f"events never deleted: {self.store.events}")
        if self.reports:
            self.ledger.check_all_reported(self.store.ended)

    def _complete_with_others(self, message: Message) -> None:
        """A claim may have to wait for a batch."""
        for _ in range(100):
            if message.executed:
                self.messages.remove(message)
                message.answer()
                return
            message.advance()

    def _work(self, node: Node) -> None:
        # Every answer has arrived by now that will.
        node.give_up_waiting()
        node.heartbeat()
        node.observe()
        node.claim()
        node.write(exact=True)
        for _ in range(3):
            node.load()
            node.fire()
            node.send_collected()
            node.answer(None)
            node.publish()
        if node.draining:
            node.release()

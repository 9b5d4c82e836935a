"""One run: attempts, faults and messages in an order that a seed decides, and then the time in which all heals."""

from __future__ import annotations

from random import Random

from .home import Limits
from .node import Attempt, Node
from .rules import MEMBER_TIMEOUT, VALID, Mutant, Violation

_NODES = 3
_HEALING_ROUNDS_MAX = 600


class World:
    """`run` plays the seed."""

    def __init__(self, seed: int, mutant: Mutant | None = None) -> None:
        self.random = random = Random(seed)
        self.mutant = mutant
        self.ticks = 0
        self.trace: list[str] | None = None
        self.limits = Limits(random.choice((1, 2, 3)), random.choice((0.2, 0.5, 100.0)), random.choice((1, 2, 5)))
        self.owner: tuple[int, int, int] | None = None
        self.heartbeats: dict[int, tuple[int, int]] = {}
        self.attempts = 0
        self.homes = 0
        self._faults = random.random() < 0.9
        self._messages: list[tuple[int, Node, int, int, object]] = []
        # Pairs of nodes between which no message passes.
        self._cut: set[frozenset[int]] = set()
        self._running: list[Attempt] = []
        self._incarnations = 0
        # How far the attempts begun are ahead of the rate, and since when.
        self._ahead, self._ahead_at = 0.0, 0
        self.nodes = [Node(self, number) for number in range(_NODES)]

    def note(self, *words: object) -> None:
        """Adds a line to the trace, if one is kept."""
        if self.trace is not None:
            self.trace.append(f"{self.ticks:5} {' '.join(map(str, words))}")

    def new_incarnation(self) -> int:
        """Identifies a process; later ones have larger numbers."""
        self._incarnations += 1
        return self._incarnations

    # ------------------------------------------------------------------ the database

    def next_epoch(self) -> int:
        """The epoch of a claim."""
        self.homes += 1
        return self.homes

    def may_be_claimed(self) -> bool:
        """Whether the rule's shard has no owner, or one that is presumed dead or was restarted."""
        if self.owner is None:
            return True
        number, incarnation, _ = self.owner
        return self.presumed_dead(number) or self.heartbeats[number][1] != incarnation

    def presumed_dead(self, number: int, early: bool = False) -> bool:
        """Whether the node has been silent for too long."""
        at, _ = self.heartbeats.get(number, (-MEMBER_TIMEOUT, 0))
        return self.ticks - at >= (VALID if early else MEMBER_TIMEOUT)

    def live_nodes(self) -> set[int]:
        """The nodes that are not presumed dead."""
        return {number for number in self.heartbeats if not self.presumed_dead(number)}

    # ------------------------------------------------------------------ messages and promises

    def send(self, sender: Node, receiver: int, message: object) -> None:
        """Puts a message on its way. It may be late, and then others overtake it."""
        late = self._faults and self.random.random() < 0.15
        held_until = self.ticks + (self.random.choice((2, VALID, 2 * VALID, MEMBER_TIMEOUT)) if late else 0)
        self.note(sender, "to", receiver, message, f"(held until {held_until})" if late else "")
        incarnation = self.nodes[receiver].incarnation
        self._messages.append((held_until, sender, receiver, incarnation, message))

    def begun(self, attempt: Attempt) -> None:
        """An attempt begins. Checks both limits."""
        self.attempts += 1
        self._running = [each for each in self._running if each.running and not each.excused]
        self._running.append(attempt)
        if len(self._running) > self.limits.parallelism:
            raise Violation(f"{len(self._running)} attempts at a time, {self.limits.parallelism} may be")
        rate, burst = self.limits.rate, self.limits.burst
        self._ahead = max(self._ahead - rate * (self.ticks - self._ahead_at), 0) + 1
        self._ahead_at = self.ticks
        # In any time T, at most burst + rate · (T + VALID) begin.
        if self._ahead > burst + rate * VALID + 1e-9:
            raise Violation(f"{self._ahead:.1f} attempts ahead of the rate, {burst} + {rate * VALID:.1f} may be")

    def _excuse(self) -> None:
        """Attempts of a node that was presumed dead, or that a new home could not ask in time, count no more."""
        for node in self.nodes:
            if self.presumed_dead(node.number) or self._unreachable_for_home(node):
                for attempt in node.running:
                    attempt.excused = True

    def _unreachable_for_home(self, node: Node) -> bool:
        for other in self.nodes:
            home = other.home
            if home is not None and node.number not in home.holders and self.ticks >= home.claimed_at + MEMBER_TIMEOUT:
                return True
        return False

    # ------------------------------------------------------------------ what may happen next

    def run(self) -> str | None:
        """The promise that was broken, or None."""
        weighted = (
            (self._pass_time, 6), (self._come_due, 3), (self._deliver, 12), (self._act, 12), (self._end, 3), (self._lead, 4),
            (self._hurry, 2), (self._release, 1), (self._fault, 1),
        )  # fmt: skip
        actions = [action for action, weight in weighted for _ in range(weight * self.random.choice((1, 2, 4)))]
        try:
            self._beat()
            self.nodes[0].claim()
            for _ in range(self.random.choice((200, 600, 1200))):
                self.random.choice(actions)()
            self._heal()
        except Violation as violation:
            self.note(violation)
            return str(violation)
        return None

    def _awake(self) -> Node | None:
        node = self.random.choice(self.nodes)
        return None if node.frozen else node

    def _pass_time(self) -> None:
        self.ticks += self.random.randint(1, 2)
        self._excuse()
        self._beat()

    def _beat(self) -> None:
        for node in self.nodes:
            if not node.frozen and self.ticks % 2 == 0:
                node.heartbeat()

    def _come_due(self) -> None:
        node = self.random.choice(self.nodes)
        node.waiting = min(node.waiting + self.random.randint(1, 3), 6)

    def _deliver(self) -> None:
        ready = [each for each in self._messages if self.ticks >= each[0] and self._passes(each)]
        if not ready:
            return
        message = self.random.choice(ready)
        self._messages.remove(message)
        if self._faults and self.random.random() < 0.05:
            self.note("lost:", message[4])
            return
        self._hand_over(message)

    def _passes(self, message: tuple[int, Node, int, int, object]) -> bool:
        _, sender, receiver, _, _ = message
        return not self.nodes[receiver].frozen and frozenset((sender.number, receiver)) not in self._cut

    def _hand_over(self, message: tuple[int, Node, int, int, object]) -> None:
        _, _, receiver, incarnation, content = message
        if self.nodes[receiver].incarnation == incarnation:
            self.nodes[receiver].receive(content)

    def _act(self) -> None:
        if node := self._awake():
            if self.random.random() < 0.3:
                node.observe()
            self.random.choice((node.report, node.begin, node.begin))()

    def _hurry(self) -> None:
        """A moment in which messages take no time."""
        for _ in range(self.random.randint(2, 8)):
            for node in self.nodes:
                if not node.frozen:
                    self.random.choice((node.claim, node.ask, node.observe, node.report, node.begin))()
            for message in [each for each in self._messages if self.ticks >= each[0] and self._passes(each)]:
                self._messages.remove(message)
                self._hand_over(message)

    def _end(self) -> None:
        if node := self._awake():
            node.end()

    def _lead(self) -> None:
        if node := self._awake():
            self.random.choice((node.claim, node.ask, node.judge))()

    def _release(self) -> None:
        if (node := self._awake()) and self.random.random() < 0.3:
            node.release()
            self._hurry()

    def _fault(self) -> None:
        random = self.random
        if not self._faults:
            return
        # The home most of all.
        leader = self.nodes[self.owner[0]] if self.owner is not None else None
        node = leader if leader is not None and random.random() < 0.4 else random.choice(self.nodes)
        chance = random.random()
        if chance < 0.2:
            node.frozen = True
        elif chance < 0.35:
            others = [other for other in range(_NODES) if other != node.number]
            self._cut |= {frozenset((node.number, other)) for other in random.sample(others, random.randint(1, 2))}
        elif chance < 0.5:
            node.dark = True
        elif chance < 0.7:
            node.restart()
            self._hurry()
        else:
            node.frozen = node.dark = False
            self._cut.clear()
        if random.random() < 0.3:
            for _ in range(random.randint(1, MEMBER_TIMEOUT)):
                self._pass_time()
        cut = [sorted(each) for each in self._cut]
        self.note("fault:", node, "frozen" * node.frozen, "dark" * node.dark, "cut", cut)

    # ------------------------------------------------------------------ the end

    def _heal(self) -> None:
        """Everything that waits begins and ends, and then the home takes no slot for used."""
        self.note("all heals")
        self._faults = False
        for node in self.nodes:
            node.frozen = node.dark = False
        self._cut.clear()
        for _ in range(_HEALING_ROUNDS_MAX):
            self.ticks += 1
            self._excuse()
            for node in self.nodes:
                node.heartbeat()
                for act in (node.observe, node.claim, node.ask, node.judge, node.report):
                    act()
            while self._messages:
                self._hand_over(self._messages.pop(0))
            for node in self.nodes:
                node.begin()
                node.end()
            home = next((node.home for node in self.nodes if node.leads), None)
            quiet = not any(node.waiting or node.running for node in self.nodes)
            if quiet and home is not None and not home.in_use:
                return
        raise Violation("something waits for a grant that never comes")

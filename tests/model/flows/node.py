"""A node: it asks the home for grants, begins attempts, and is the home while it owns the rule's shard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .home import Answer, Home, Question, Report
from .rules import LEASE, VALID, Mutant

if TYPE_CHECKING:
    from .world import World


class Attempt:
    """`excused`: its node was presumed dead or could not be asked since, and the limits do not count it."""

    __slots__ = ("excused", "running")

    def __init__(self) -> None:
        self.excused = False
        self.running = True


class Node:
    """One node's processes, one after another."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.frozen = False
        # Cut off from the database.
        self.dark = False
        self.waiting = 0
        self.restart()

    def __str__(self) -> str:
        return f"node {self.number}"

    def restart(self) -> None:
        """A new process. Attempts of the former one are left at their receivers."""
        for attempt in getattr(self, "running", ()):
            attempt.excused = True
        self.incarnation = self.world.new_incarnation()
        self.frozen = False
        self.lease_until = -1
        self.home: Home | None = None
        self.running: list[Attempt] = []
        self._begun = 0
        # The home that it reports to, its last report, when it sent that, and what was granted for it.
        self._epoch = 0
        self._home = 0
        self._number = 0
        self._sent_at = 0
        self._unanswered = False
        self._granted = 0
        self._granted_at = 0
        self._reported = (0, 0, 0)

    @property
    def leads(self) -> bool:
        """Whether it may act as the home."""
        lapsed = self.world.ticks >= self.lease_until and self.world.mutant is not Mutant.HOME_WITHOUT_LEASE
        if lapsed:
            self.home = None
        return self.home is not None

    def heartbeat(self) -> None:
        """Confirms its lease in the database. A lease that lapsed ends its claim."""
        if self.dark:
            return
        world = self.world
        self.leads  # noqa: B018 -- it notices the lapse
        world.heartbeats[self.number] = (world.ticks, self.incarnation)
        self.lease_until = world.ticks + LEASE
        if self.home is not None and world.owner != (self.number, self.incarnation, self.home.epoch):
            self.home = None

    def claim(self) -> None:
        """Becomes the home if there is none, or if the one there is presumed dead."""
        world = self.world
        # Its own claim has lapsed: it claims again, since it may have missed anything.
        again = world.owner is not None and world.owner[0] == self.number and self.home is None
        if self.dark or world.ticks >= self.lease_until or not (again or world.may_be_claimed()):
            return
        epoch = world.next_epoch()
        world.owner = (self.number, self.incarnation, epoch)
        self.home = Home(epoch, world.ticks, world.limits, world.live_nodes(), world.mutant)
        world.note(self, "is the home, epoch", epoch, "asks", *self.home.live)

    def ask(self) -> None:
        """As a new home: asks those that have not reported yet, itself included."""
        if self.leads and self.home is not None:
            for number in self.home.awaited(self.world.ticks):
                self.world.send(self, number, Question(self.home.epoch, self.number))

    def release(self) -> None:
        """Gives the home up: it grants nothing from here on."""
        if self.leads and not self.dark:
            self.world.note(self, "releases the home")
            self.home = None
            self.world.owner = None

    def judge(self) -> None:
        """As the home: forgets nodes that are presumed dead, or that have had their time to answer."""
        home, world = self.home, self.world
        if not self.leads or home is None or self.dark:
            return
        for number in list(home.live | home.holders.keys()):
            if world.presumed_dead(number, early=world.mutant is Mutant.SILENT_NODE_FREED_EARLY):
                home.forget(number)
        home.live |= world.live_nodes()

    def observe(self) -> None:
        """Reads who the home is, and reports to that one from here on. Grants of the former one are void."""
        if not self.dark and self.world.owner is not None:
            number, _, epoch = self.world.owner
            self._turn_to(epoch, number)

    def report(self) -> None:
        """Sends a report: of what it wants, or of what is in use no more. An answer to an earlier report is void."""
        world = self.world
        if not self._epoch or (self._unanswered and world.ticks < self._sent_at + VALID):
            return
        wanted = min(self.waiting, 2)
        # A grant that was used comes back with a report, too, even if its attempt has ended since.
        if not (wanted or self._unanswered or self._granted) and self._reported == self._state:
            return
        self._send(wanted)

    @property
    def _state(self) -> tuple[int, int, int]:
        begun = 0 if self.world.mutant is Mutant.USED_GRANT_IS_NOT_REPORTED else self._begun
        return self._epoch, len(self.running), begun

    def _send(self, wanted: int) -> None:
        world = self.world
        self._number += 1
        self._sent_at = world.ticks
        self._unanswered = True
        if world.mutant is not Mutant.LATE_ANSWER_COUNTS:
            self._granted = 0
        self._reported = self._state
        report = Report(
            self.number, self.incarnation, self._epoch, self._number, len(self.running), self._begun, wanted
        )
        world.send(self, self._home, report)

    def receive(self, message: object) -> None:
        """A message of another node, or of itself."""
        world = self.world
        if isinstance(message, Question):
            if message.epoch >= self._epoch:
                self._turn_to(message.epoch, message.home)
                kept = self._granted if world.mutant is Mutant.ASKED_NODE_KEEPS_GRANTS else 0
                self._send(0)
                self._granted = self._granted or kept
        elif isinstance(message, Report):
            if self.leads and self.home is not None and self.home.epoch == message.epoch:
                answer = self.home.take(message, world.ticks)
                if answer is not None:
                    world.send(self, message.node, answer)
        elif isinstance(message, Answer):
            late = message.number != self._number and world.mutant is not Mutant.LATE_ANSWER_COUNTS
            if message.epoch != self._epoch or late or not self._unanswered:
                return
            self._unanswered = False
            self._granted = message.count
            self._granted_at = world.ticks if world.mutant is Mutant.VALID_FROM_RECEIPT else self._sent_at

    def _turn_to(self, epoch: int, home: int) -> None:
        if epoch > self._epoch:
            self._epoch, self._home = epoch, home
            self._unanswered = False
            if self.world.mutant is not Mutant.ASKED_NODE_KEEPS_GRANTS:
                self._granted = 0

    def begin(self) -> None:
        """Begins an attempt, if there is a grant for it that is valid."""
        world = self.world
        valid = world.ticks < min(self._granted_at + VALID, self.lease_until)
        if not (self.waiting and self._granted and valid):
            return
        self._granted -= 1
        self.waiting -= 1
        self._begun += 1
        attempt = Attempt()
        self.running.append(attempt)
        world.note(self, "begins an attempt")
        world.begun(attempt)

    def end(self) -> None:
        """An attempt of this process ends."""
        if self.running:
            self.running.pop(self.world.random.randrange(len(self.running))).running = False

"""Which members are alive, and which should own which shard. Pure. The view may be wrong for a while; safety does not depend
on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from tocsin.ports.store import Member
from tocsin.timers.engine.rendezvous import Rendezvous

_SEPARATOR = "#"


class Flag(StrEnum):
    """What a member announces besides its address."""

    #: It hands its shards over and takes none.
    LEAVING = "leaving"
    #: Its clock differs from the store's: other members, if there are any, should take its shards.
    SKEWED = "skewed"
    #: It has read timers stored by a newer release, likewise.
    OUTDATED = "outdated"


#: The words with the URL of a member's API, with the marks of the secrets that it knows, and with its start begin so.
_API_URL, _SECRETS, _SINCE = "api=", "secrets=", "since="


def announced(
    address: str,
    *,
    leaving: bool,
    skewed: bool = False,
    outdated: bool = False,
    api_url: str = "",
    secret_marks: Sequence[str] = (),
    since_us: int = 0,
) -> str:
    """The address with the flags and the URL of the API, as the member row has it.

    Of several flags that concern the shards, the first is announced. `secret_marks` are those of the secrets that the member
    accepts, `since_us` is its start by the store's clock.
    """
    raised = {Flag.LEAVING: leaving, Flag.SKEWED: skewed, Flag.OUTDATED: outdated}
    words: list[str] = [flag.value for flag, is_raised in raised.items() if is_raised][:1]
    if api_url:
        words.append(_API_URL + api_url)
    if secret_marks:
        words += [_SECRETS + ",".join(secret_marks), f"{_SINCE}{since_us}"]
    return f"{address}{_SEPARATOR}{' '.join(words)}"


def address_of(member: Member) -> str:
    """The address at which the member takes requests of other nodes; empty if it takes none."""
    return member.address.partition(_SEPARATOR)[0]


def api_url_of(member: Member) -> str | None:
    """The URL at which clients reach the member's API; None if it announces none."""
    return _word(member, _API_URL)


def secret_marks_of(member: Member) -> frozenset[str]:
    """The marks of the secrets that the member accepts; empty if it announces none."""
    marks = _word(member, _SECRETS)
    return frozenset() if marks is None else frozenset(marks.split(","))


def _seniority(member: Member) -> tuple[int, bytes]:
    """Smaller for a member that started earlier. The order never changes, and every node sees the same."""
    since = _word(member, _SINCE) or ""
    return (int(since) if since.isdecimal() else 0, member.incarnation)


def _word(member: Member, beginning: str) -> str | None:
    words = member.address.partition(_SEPARATOR)[2].split()
    return next((word.removeprefix(beginning) for word in words if word.startswith(beginning)), None)


def with_another_secret(members: Iterable[Member]) -> frozenset[bytes]:
    """Those of the living members that can't authenticate with all others: the ones that started later. Two members can if
    they have a secret in common; one that announces none can with all."""
    admitted: list[frozenset[str]] = []
    found = set()
    for member in sorted(members, key=_seniority):
        marks = secret_marks_of(member)
        if marks and any(marks.isdisjoint(others) for others in admitted):
            found.add(member.incarnation)
        elif marks:
            admitted.append(marks)
    return frozenset(found)


def flags_of(member: Member) -> set[str]:
    """The member's flags, and words of other releases."""
    return set(member.address.partition(_SEPARATOR)[2].split())


class Membership:
    """The members as this node observes them: another member is alive while its heartbeat counter moves.

    Instants are this node's boot time in microseconds. Clocks of two nodes are never compared.
    """

    def __init__(self, own: bytes, timeout_us: int, shards: int) -> None:
        self._own = own
        self._timeout_us = timeout_us
        self._seen: dict[bytes, tuple[Member, int]] = {}
        # When each member was first seen, and when its counter was last seen to have moved; -1: never.
        self._sightings: dict[bytes, tuple[int, int]] = {}
        self._alive: dict[bytes, str] = {}
        self._candidates: dict[bytes, str] = {}
        # Which of the candidates should own which shard; and the same of those that could take one from this node, which is
        # not kept up to date before somebody asks.
        self._wanted = Rendezvous(shards)
        self._others: dict[bytes, str] = {}
        self._successors = Rendezvous(shards)
        self._with_another_secret: frozenset[bytes] = frozenset()
        self._stable_since: int | None = None
        self._observed_at: int | None = None

    def observe(self, members: Iterable[Member], boot_us: int) -> None:
        """Updates the view with a fresh read of the member rows."""
        former = self._seen
        # A node that paused its reads can't know how long a counter has not moved.
        watched = self._observed_at is not None and boot_us - self._observed_at < self._timeout_us
        self._observed_at = boot_us
        self._seen = {}
        for member in members:
            known = former.get(member.incarnation)
            moved = known is None or known[0].counter != member.counter or not watched
            self._seen[member.incarnation] = (member, boot_us if moved or known is None else known[1])
        self._note_sightings(former, boot_us)
        alive = {
            incarnation: member.node
            for incarnation, (member, since) in self._seen.items()
            if incarnation == self._own or boot_us - since < self._timeout_us
        }
        # A member that is gone was watched for long enough, or announced it. One that joins may leave again, so the view has
        # to be stable for a while.
        if self._stable_since is None or not alive.keys() <= self._alive.keys():
            self._stable_since = boot_us
        self._alive = alive
        self._with_another_secret = with_another_secret(
            member for member in self.members() if member.incarnation in alive
        )
        staying = {
            incarnation: node
            for incarnation, node in alive.items()
            if not self.has(incarnation, Flag.LEAVING) and incarnation not in self._with_another_secret
        }
        # If every node's clock differs from the store's, the store's is wrong, and withholding the shards would not help. The
        # same holds if every node is outdated: each leaves the shards that it can't read.
        self._candidates = {
            incarnation: node
            for incarnation, node in staying.items()
            if not (self.has(incarnation, Flag.SKEWED) or self.has(incarnation, Flag.OUTDATED))
        } or staying
        self._wanted.update(self._candidates)
        self._others = {
            incarnation: node
            for incarnation, node in self._candidates.items()
            if incarnation != self._own and self._sightings[incarnation][1] >= 0
        }

    def _note_sightings(self, former: dict[bytes, tuple[Member, int]], boot_us: int) -> None:
        sightings = self._sightings
        self._sightings = {}
        for incarnation, (member, _) in self._seen.items():
            first, last = sightings.get(incarnation, (boot_us, -1))
            known = former.get(incarnation)
            moved = known is not None and known[0].counter != member.counter
            self._sightings[incarnation] = (first, boot_us if moved else last)

    def shared_names(self) -> dict[str, tuple[bytes, ...]]:
        """Names that several living members share, with their incarnations.

        A restarted node does not share its name with its former row, whose counter no longer moves. Members that are leaving
        don't count, nor do two that were both seen for less than the timeout.
        """
        by_name: dict[str, list[bytes]] = {}
        for incarnation, node in self._alive.items():
            if not self.has(incarnation, Flag.LEAVING):
                by_name.setdefault(node, []).append(incarnation)
        found = {}
        for node, all_of_it in by_name.items():
            living = [one for one in all_of_it if any(self._beside(one, other) for other in all_of_it if other != one)]
            if living:
                found[node] = tuple(sorted(living))
        return found

    def _beside(self, one: bytes, other: bytes) -> bool:
        """Whether each one's counter moved after the other had been present for the timeout."""
        (one_first, one_last), (other_first, other_last) = self._sightings[one], self._sightings[other]
        return one_last - other_first >= self._timeout_us and other_last - one_first >= self._timeout_us

    def stable_for_us(self, boot_us: int) -> int:
        """How long no member has joined, in microseconds."""
        return boot_us - self._stable_since if self._stable_since is not None else 0

    def unsettle(self) -> None:
        """Resets the stability, because this node's own heartbeats failed and it can't rely on its view."""
        self._stable_since = None

    def alone(self) -> bool:
        """Whether there is no other member row, living or dead."""
        return self._observed_at is not None and self._seen.keys() <= {self._own}

    def silent_for_us(self, incarnation: bytes, boot_us: int) -> int:
        """How long the member's counter has not moved, as far as this node has watched; 0 for an unknown member."""
        known = self._seen.get(incarnation)
        return boot_us - known[1] if known is not None else 0

    def presumed_dead(self, incarnation: bytes, boot_us: int) -> tuple[bytes, int] | None:
        """(incarnation, counter) if the member's counter has not moved for the timeout, else None."""
        known = self._seen.get(incarnation)
        if known is None or boot_us - known[1] < self._timeout_us:
            return None
        return (incarnation, known[0].counter)

    def knows(self, incarnation: bytes) -> bool:
        """Whether there is a member row of that incarnation."""
        return incarnation in self._seen

    def alive(self, incarnation: bytes) -> bool:
        """Whether the member's counter moved within the timeout."""
        return incarnation in self._alive

    def has(self, incarnation: bytes, flag: Flag) -> bool:
        """Whether the member announces the flag."""
        known = self._seen.get(incarnation)
        return known is not None and flag in flags_of(known[0])

    def secret_differs(self, incarnation: bytes) -> bool:
        """Whether the member can't authenticate with members that started earlier, so that it must not own shards: no write
        could be forwarded to it."""
        return incarnation in self._with_another_secret

    def with_another_secret(self) -> list[Member]:
        """Those members."""
        return [member for member in self.members() if member.incarnation in self._with_another_secret]

    def excluded(self, incarnation: bytes) -> bool:
        """Whether the member is alive and gets no shards, because it is leaving, its secret differs, or others are fitter."""
        return incarnation in self._alive and incarnation not in self._candidates

    def address(self, incarnation: bytes) -> str:
        """The address at which the member takes requests of other nodes; empty if it takes none or is unknown."""
        known = self._seen.get(incarnation)
        return address_of(known[0]) if known is not None else ""

    def name(self, incarnation: bytes) -> str:
        """The member's name; empty if it is unknown."""
        known = self._seen.get(incarnation)
        return known[0].node if known is not None else ""

    def secret_marks(self, incarnation: bytes) -> frozenset[str]:
        """The marks of the secrets that the member accepts; empty if it announces none or is unknown."""
        known = self._seen.get(incarnation)
        return frozenset() if known is None else secret_marks_of(known[0])

    @property
    def was_read(self) -> bool:
        """Whether the rows of the members were read since the start."""
        return self._observed_at is not None

    def members(self) -> list[Member]:
        """All members, as last read."""
        return [member for member, _ in self._seen.values()]

    def wanted(self, shard_id: int) -> bytes | None:
        """The living member that should own the shard, among those that are not leaving and, if possible, are fit."""
        return self._wanted.owner(shard_id)

    def successor(self, shard_id: int) -> bytes | None:
        """The same among the other members: the one that takes the shard when this node releases it. Only one whose counter
        was seen to move counts: the row of a node that has ended may come back with a heartbeat that was late."""
        wanted = self.wanted(shard_id)
        if wanted in self._others:
            return wanted
        self._successors.update(self._others)
        return self._successors.owner(shard_id)

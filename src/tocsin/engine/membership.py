"""Who is alive, and who should own which shard. Pure; may be wrong for a while, and safety does not depend on it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from tocsin.ports.store import Member

#: What a member says of itself, after its address: that it hands its shards over and wants none any more; that its clock
#: is off the store's, or that it has met timers stored by a newer release, so that others should have them as long as there
#: are others.
_LEAVING, _SKEWED, _OUTDATED = "leaving", "skewed", "outdated"
#: And that it reads timers of record format 2. An earlier release, which does not, announces nothing of the kind.
_FORMAT_2 = "format2"
_FLAGS = "#"


def announced(
    address: str, *, leaving: bool, skewed: bool = False, outdated: bool = False, beside_earlier: bool = False
) -> str:
    """The address as a member row tells it. An earlier release understands one word at most: beside one (`beside_earlier`),
    what concerns the shards comes first. Record format 2 isn't in use then anyway."""
    words = [_LEAVING if leaving else _SKEWED if skewed else _OUTDATED] if leaving or skewed or outdated else []
    if not (words and beside_earlier):
        words.append(_FORMAT_2)
    return f"{address}{_FLAGS}{' '.join(words)}"


def address_of(member: Member) -> str:
    """Where the member takes requests of other nodes; empty: nowhere."""
    return member.address.partition(_FLAGS)[0]


def is_leaving(member: Member) -> bool:
    """Whether it has said that it leaves."""
    return _LEAVING in _words(member)


def is_skewed(member: Member) -> bool:
    """Whether it has said that its clock is off the store's."""
    return _SKEWED in _words(member)


def is_unfit(member: Member) -> bool:
    """Whether others should have the shards, by its own account."""
    return not {_SKEWED, _OUTDATED}.isdisjoint(_words(member))


def reads_format_2(member: Member) -> bool:
    """Whether it reads timers of record format 2."""
    return _FORMAT_2 in _words(member)


def _words(member: Member) -> list[str]:
    return member.address.partition(_FLAGS)[2].split()


class Membership:
    """Members as this node has watched them: another is alive while its heartbeat counter moves.

    Instants are this node's boot time in microseconds; no clocks are compared between nodes.
    """

    def __init__(self, own: bytes, timeout_us: int) -> None:
        self._own = own
        self._timeout_us = timeout_us
        self._seen: dict[bytes, tuple[Member, int]] = {}
        # When each was seen for the first time, and when its counter was last seen to have moved; -1: never.
        self._sightings: dict[bytes, tuple[int, int]] = {}
        self._alive: dict[bytes, str] = {}
        self._candidates: dict[bytes, str] = {}
        self._stable_since: int | None = None
        self._observed_at: int | None = None
        #: Whether every living member, as last read, reads timers of record format 2; False before the first reading.
        self.format_2 = False

    def observe(self, members: Iterable[Member], boot_us: int) -> None:
        """Takes in a fresh reading of the member rows."""
        former = self._seen
        # Who did not look has not seen anybody stand still.
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
        # Whoever is gone was watched for long enough, or said so; who has come may go again, and is waited for.
        if self._stable_since is None or not alive.keys() <= self._alive.keys():
            self._stable_since = boot_us
        self._alive = alive
        self.format_2 = all(reads_format_2(self._seen[incarnation][0]) for incarnation in alive)
        staying = {
            incarnation: node for incarnation, node in alive.items() if not is_leaving(self._seen[incarnation][0])
        }
        # Where every clock is off, it is the store's that is wrong: giving shards to nobody would make it no better. Nor
        # would it where every node is outdated: each leaves the shards that it can't read.
        self._candidates = {
            incarnation: node for incarnation, node in staying.items() if not is_unfit(self._seen[incarnation][0])
        } or staying

    def _note_sightings(self, former: dict[bytes, tuple[Member, int]], boot_us: int) -> None:
        sightings = self._sightings
        self._sightings = {}
        for incarnation, (member, _) in self._seen.items():
            first, last = sightings.get(incarnation, (boot_us, -1))
            known = former.get(incarnation)
            moved = known is not None and known[0].counter != member.counter
            self._sightings[incarnation] = (first, boot_us if moved else last)

    def shared_names(self) -> dict[str, tuple[bytes, ...]]:
        """Names that several living members have at a time, with their incarnations. A node that has started again has its
        name to itself, however long its former row stays: that one's counter doesn't move beside the new one's. Whoever
        leaves is about to make room, and not counted; nor is anybody whom this node has seen beside the other for less
        than the timeout."""
        by_name: dict[str, list[bytes]] = {}
        for incarnation, node in self._alive.items():
            if not is_leaving(self._seen[incarnation][0]):
                by_name.setdefault(node, []).append(incarnation)
        found = {}
        for node, all_of_it in by_name.items():
            living = [one for one in all_of_it if any(self._beside(one, other) for other in all_of_it if other != one)]
            if living:
                found[node] = tuple(sorted(living))
        return found

    def _beside(self, one: bytes, other: bytes) -> bool:
        """Whether each was sightings of when the other had been there for the timeout."""
        (one_first, one_last), (other_first, other_last) = self._sightings[one], self._sightings[other]
        return one_last - other_first >= self._timeout_us and other_last - one_first >= self._timeout_us

    def stable_for_us(self, boot_us: int) -> int:
        """How long nobody has joined."""
        return boot_us - self._stable_since if self._stable_since is not None else 0

    def unsettle(self) -> None:
        """This node can't rely on its view any more (its own heartbeats failed): stability starts anew."""
        self._stable_since = None

    def alone(self) -> bool:
        """Whether there is no row of any other member, living or dead."""
        return self._observed_at is not None and self._seen.keys() <= {self._own}

    def silent_for_us(self, incarnation: bytes, boot_us: int) -> int:
        """How long its counter has stood still, as far as this node has watched; 0 for an unknown member."""
        known = self._seen.get(incarnation)
        return boot_us - known[1] if known is not None else 0

    def presumed_dead(self, incarnation: bytes, boot_us: int) -> tuple[bytes, int] | None:
        """(incarnation, counter) if its counter has not moved for the timeout, else None."""
        known = self._seen.get(incarnation)
        if known is None or boot_us - known[1] < self._timeout_us:
            return None
        return (incarnation, known[0].counter)

    def knows(self, incarnation: bytes) -> bool:
        """Whether there is a member row for it."""
        return incarnation in self._seen

    def alive(self, incarnation: bytes) -> bool:
        """Whether its counter moved within the timeout."""
        return incarnation in self._alive

    def leaving(self, incarnation: bytes) -> bool:
        """Whether it hands its shards over."""
        known = self._seen.get(incarnation)
        return known is not None and is_leaving(known[0])

    def skewed(self, incarnation: bytes) -> bool:
        """Whether its clock is off the store's, by its own account."""
        known = self._seen.get(incarnation)
        return known is not None and is_skewed(known[0])

    def excluded(self, incarnation: bytes) -> bool:
        """Whether the member is alive and gets no shards, because it leaves or because others have better clocks."""
        return incarnation in self._alive and incarnation not in self._candidates

    def address(self, incarnation: bytes) -> str:
        """Where the member takes requests of other nodes; empty when it takes none, or isn't known."""
        known = self._seen.get(incarnation)
        return address_of(known[0]) if known is not None else ""

    def members(self) -> list[Member]:
        """All of them, as last read."""
        return [member for member, _ in self._seen.values()]

    def wanted(self, shard_id: int) -> bytes | None:
        """The live member that should own the shard, of those that don't leave and, if there are any, whose clocks are right:
        the greatest of the members' scores for it (rendezvous hashing, Thaler and Ravishankar 1998), so that a node that
        comes or goes moves only its own share."""
        return self._best(shard_id, self._candidates)

    def successor(self, shard_id: int) -> bytes | None:
        """The same of the other members: who takes the shard when this one gives it back."""
        return self._best(shard_id, {i: node for i, node in self._candidates.items() if i != self._own})

    @staticmethod
    def _best(shard_id: int, candidates: dict[bytes, str]) -> bytes | None:
        best, best_score = None, b""
        for incarnation, node in candidates.items():
            score = hashlib.blake2b(f"{node}\0{shard_id}".encode(), digest_size=16).digest()
            if best is None or (score, incarnation) > (best_score, best):
                best, best_score = incarnation, score
        return best

"""The home of a rule: it accounts for slots and tokens, and grants them."""

from __future__ import annotations

from dataclasses import dataclass, field

from .rules import MEMBER_TIMEOUT, VALID, Mutant


@dataclass(frozen=True)
class Limits:
    """Of one key. `rate` is in tokens a tick."""

    parallelism: int
    rate: float
    burst: int


@dataclass(frozen=True)
class Report:
    """What a node states in each message to a home: attempts in flight, and how many it has begun since its start. Later ones
    have larger numbers."""

    node: int
    incarnation: int
    epoch: int
    number: int
    in_use: int
    begun: int
    wanted: int = 0


@dataclass(frozen=True)
class Question:
    """A new home asks a node for its report."""

    epoch: int
    home: int


@dataclass(frozen=True)
class Answer:
    """So many attempts may begin, within the validity that counts from the report with that number."""

    epoch: int
    number: int
    count: int


@dataclass
class Holder:
    """What the home knows of a node: its last report, and what it was granted then."""

    report: Report
    granted: int = 0
    granted_at: int = 0


@dataclass
class Home:
    """Of one claim. It begins with no token, and grants nothing before each live node has reported, or has had the time in
    which others presume it dead."""

    epoch: int
    claimed_at: int
    limits: Limits
    live: set[int]
    mutant: Mutant | None = None
    holders: dict[int, Holder] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tokens = float(self.limits.burst) if self.mutant is Mutant.NEW_HOME_HAS_FULL_BUCKET else 0.0
        self._filled_at = self.claimed_at

    def awaited(self, now: int) -> set[int]:
        """The nodes for whose reports it waits."""
        patience = VALID - 2 if self.mutant is Mutant.GIVES_UP_ASKING_EARLY else MEMBER_TIMEOUT
        if self.mutant is Mutant.HOME_DOES_NOT_ASK or now >= self.claimed_at + patience:
            return set()
        return self.live - self.holders.keys()

    def forget(self, node: int) -> None:
        """The node is presumed dead: what it left at receivers does not count any more."""
        self.live.discard(node)
        self.holders.pop(node, None)

    def take(self, report: Report, now: int) -> Answer | None:
        """Takes a report; None if a later one has come before. What the last answer granted is in use as far as the report
        states so; its other tokens return."""
        known = self.holders.get(report.node)
        if known is not None and not self._follows(report, known.report):
            return None
        self._fill(now)
        if known is not None:
            same = known.report.incarnation == report.incarnation
            used = report.begun - known.report.begun if same else known.granted
            if self.mutant is Mutant.TOKENS_RETURNED_BLINDLY:
                used = 0
            self._return(max(known.granted - used, 0), report.node)
        holder = self.holders[report.node] = Holder(report, granted_at=now)
        if report.wanted and not self.awaited(now):
            free = self.limits.parallelism - sum(self._held(each, now) for each in self.holders.values())
            holder.granted = max(min(report.wanted, free, int(self.tokens)), 0)
            self.tokens -= holder.granted
        return Answer(self.epoch, report.number, holder.granted)

    def _return(self, tokens: int, node: int) -> None:
        """What was not used comes back, but not on top of what others hold: with a bucket that was filled meanwhile, more
        than the burst could begin at once."""
        held = sum(holder.granted for number, holder in self.holders.items() if number != node)
        most = self.limits.burst - (0 if self.mutant is Mutant.TOKENS_RETURN_ON_TOP else held)
        self.tokens = max(self.tokens, min(self.tokens + tokens, most))

    def _follows(self, report: Report, before: Report) -> bool:
        if self.mutant is Mutant.LATE_REQUEST_COUNTS:
            return True
        return (report.incarnation, report.number) > (before.incarnation, before.number)

    def _held(self, holder: Holder, now: int) -> int:
        over = self.mutant is Mutant.GRANTS_END_BY_TIME and now >= holder.granted_at + VALID
        return holder.report.in_use + (0 if over else holder.granted)

    def _fill(self, now: int) -> None:
        self.tokens = min(self.tokens + self.limits.rate * (now - self._filled_at), self.limits.burst)
        self._filled_at = now

    @property
    def in_use(self) -> int:
        """Slots that it takes for used."""
        return sum(holder.report.in_use + holder.granted for holder in self.holders.values())

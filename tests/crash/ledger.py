"""A ledger of acknowledged writes and received calls, and the checks that they agree."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tocsin.model.instants import parse_instant

#: Calls that a killed server had sent may be read this much later.
_STILL_ARRIVING_US = 1_000_000
#: A node learns that late that the database has not taken a call's result: its drivers wait up to 10 s for an answer.
_UNWRITTEN_US = 15_000_000


@dataclass(slots=True)
class Change:
    """One write of a client: `version` identifies its payload; `acked_at` is None while the outcome is unknown."""

    version: int
    deletes: bool
    sent_at: int
    execute_at: int = 0
    acked_at: int | None = None
    refused: bool = False


@dataclass(slots=True)
class Receipt:
    """One call that the receiver got; all instants in microseconds of this machine's clock."""

    version: int
    attempt: int
    fired_at: int
    arrived_at: int


@dataclass(slots=True)
class Ledger:
    """Changes by timer, receipts by timer, when the server was killed, and when the database failed a write, by the nodes'
    own logs."""

    changes: dict[str, list[Change]] = field(default_factory=lambda: defaultdict(list))
    receipts: dict[str, list[Receipt]] = field(default_factory=lambda: defaultdict(list))
    kills: list[int] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)

    @property
    def acknowledged(self) -> int:
        """The number of acknowledged writes."""
        return sum(change.acked_at is not None for changes in self.changes.values() for change in changes)

    def receive(self, body: dict[str, object], arrived_at: int) -> None:
        """Adds a call."""
        payload = body["payload"]
        assert isinstance(payload, dict)
        receipt = Receipt(payload["v"], int(str(body["attempt"])), parse_instant(str(body["firedAt"])), arrived_at)
        self.receipts[str(body["timerId"])].append(receipt)

    def missing(self) -> list[str]:
        """Timers whose last acknowledged state had to fire and did not."""
        return [timer for timer in self.changes if self._owed(timer)]

    def _owed(self, timer: str) -> bool:
        fired = {receipt.version for receipt in self.receipts[timer]}
        return self.owes(timer) and not any(change.version in fired for change in self._possible(timer))

    def owes(self, timer: str) -> bool:
        """Whether the timer's last acknowledged state has to fire: no delete was done or may have been done."""
        possible = self._possible(timer)
        return bool(possible) and not any(change.deletes for change in possible)

    def _possible(self, timer: str) -> list[Change]:
        """The last acknowledged change, and later ones that may have been done; empty when none was acknowledged."""
        changes = [change for change in self.changes[timer] if not change.refused]
        acked = [index for index, change in enumerate(changes) if change.acked_at is not None]
        return changes[acked[-1] :] if acked else []

    def early(self) -> list[tuple[str, Receipt]]:
        """Calls that arrived before their instant."""
        due = {(timer, c.version): c.execute_at for timer, changes in self.changes.items() for c in changes}
        return [
            (timer, receipt)
            for timer, receipts in self.receipts.items()
            for receipt in receipts
            if receipt.arrived_at < due[timer, receipt.version]
        ]

    def after_change(self) -> list[tuple[str, Receipt, Change]]:
        """Calls that fired after a later change of the timer had been acknowledged."""
        wrong = []
        for timer, receipts in self.receipts.items():
            changes = [change for change in self.changes[timer] if not change.refused]
            place = {change.version: index for index, change in enumerate(changes)}
            for receipt in receipts:
                wrong += [
                    (timer, receipt, later)
                    for later in changes[place[receipt.version] + 1 :]
                    if later.acked_at is not None and receipt.fired_at > later.acked_at
                ]
        return wrong

    def duplicates(self, before_kill_us: int) -> tuple[int, list[tuple[str, Receipt, int]]]:
        """How many attempts arrived more than once, and those whose former arrival was not shortly before a kill or a failed
        write."""
        count, unexplained = 0, []
        for timer, receipts in self.receipts.items():
            seen: dict[tuple[int, int], Receipt] = {}
            for receipt in receipts:
                former = seen.get((receipt.version, receipt.attempt))
                seen[receipt.version, receipt.attempt] = receipt
                if former is None:
                    continue
                count += 1
                killed = (-_STILL_ARRIVING_US <= kill - former.arrived_at <= before_kill_us for kill in self.kills)
                failed = (0 <= at - former.arrived_at <= _UNWRITTEN_US for at in self.failures)
                if not any(killed) and not any(failed):
                    to_kill_us = min(
                        (kill - former.arrived_at for kill in self.kills if kill > former.arrived_at), default=-1
                    )
                    unexplained.append((timer, receipt, to_kill_us))
        return count, unexplained

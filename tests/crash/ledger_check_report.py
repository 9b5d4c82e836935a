"""The ledger of the end-to-end check: the answers that clients got, the calls that the receiver got, and the comparison."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.crash.ledger import Change, Ledger, Receipt
from tests.crash.ledger_check_receiver import CALL

_CHANGE = struct.Struct("<IIBqqq")
_DELETES, _ACKNOWLEDGED, _REFUSED = 1, 2, 4
#: Timers checked at a time, to limit memory.
_SLICE_TIMERS = 250_000


@dataclass
class Report:
    """The result of the check. The four lists, from `lost` on, must be empty."""

    timers: int = 0
    creates_acknowledged: int = 0
    updates_acknowledged: int = 0
    deletes_acknowledged: int = 0
    #: Updates and deletes that arrived after the timer had fired.
    refused: int = 0
    #: Writes whose outcome is unknown; each was sent again.
    outcome_unknown: int = 0
    #: Timers that had to fire, and by which write they did.
    owed: int = 0
    fired_for_last_acknowledged: int = 0
    fired_for_unknown_outcome: int = 0
    calls: int = 0
    duplicates: int = 0
    #: Writes that the database failed, and claims that were lost, by the nodes' logs.
    failed_writes: int = 0
    latest_s: float = 0.0
    failures: dict[str, int] = field(default_factory=dict)
    lost: list[object] = field(default_factory=list)
    early: list[object] = field(default_factory=list)
    after_change: list[object] = field(default_factory=list)
    unexplained: list[object] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every guarantee holds and every timer is accounted for."""
        fired = self.fired_for_last_acknowledged + self.fired_for_unknown_outcome
        wrong = self.lost or self.early or self.after_change or self.unexplained
        return not wrong and fired == self.owed and self.creates_acknowledged >= self.timers

    def lines(self) -> Iterator[str]:
        """The report as text."""
        for name, value in asdict(self).items():
            shown = len(value) if isinstance(value, list) else value
            yield f"{name.replace('_', ' '):28} {shown:,}" if isinstance(shown, int) else f"{name:28} {shown}"
            if isinstance(value, list):
                yield from (f"    {entry}" for entry in value[:5])
        yield f"{'passed':28} {'yes' if self.passed else 'NO'}"


class WriteLog:
    """Every write that clients sent, in order for each timer, in a few bytes each."""

    def __init__(self) -> None:
        self.timers = 0
        self.failures: Counter[str] = Counter()
        #: When faults were injected, in microseconds of this machine's clock.
        self.faults: list[int] = []
        #: When the database failed a node's write, or the node lost a claim.
        self.failed_writes: list[int] = []
        self._changes = bytearray()
        self._count = 0

    def sent(self, number: int, execute_at: int, sent_at: int, *, deletes: bool = False) -> int:
        """Logs a write before it is sent; returns its version, which is put into the payload."""
        flags = _DELETES if deletes else 0
        self._changes += _CHANGE.pack(number, self._count, flags, sent_at, execute_at, 0)
        self._count += 1
        return self._count - 1

    def acknowledged(self, version: int, at: int) -> None:
        """Logs that the write was acknowledged."""
        self._mark(version, _ACKNOWLEDGED, at)

    def refused(self, version: int) -> None:
        """Logs that the write was refused because the timer is not pending."""
        self._mark(version, _REFUSED, 0)

    def _mark(self, version: int, flag: int, at: int) -> None:
        place = version * _CHANGE.size
        number, _, flags, sent_at, execute_at, _ = _CHANGE.unpack_from(self._changes, place)
        _CHANGE.pack_into(self._changes, place, number, version, flags | flag, sent_at, execute_at, at)

    def report(self, calls: Path, before_fault_us: int) -> Report:
        """Compares the writes with the receiver's log. A duplicate is explained if the former call arrived at most
        `before_fault_us` before a fault, or shortly before a failed write."""
        result = Report(timers=self.timers, failed_writes=len(self.failed_writes), failures=dict(self.failures))
        data = calls.read_bytes()
        for first in range(0, self.timers, _SLICE_TIMERS):
            ledger = Ledger(kills=self.faults, failures=self.failed_writes)
            within = range(first, first + _SLICE_TIMERS)
            for number, version, flags, sent_at, execute_at, acked_at in _CHANGE.iter_unpack(self._changes):
                if number in within:
                    change = Change(version, bool(flags & _DELETES), sent_at, execute_at, acked_at or None)
                    change.refused = bool(flags & _REFUSED)
                    ledger.changes[str(number)].append(change)
            for number, version, attempt, fired_at, arrived_at in CALL.iter_unpack(data):
                if number in within:
                    ledger.receipts[str(number)].append(Receipt(version, attempt, fired_at, arrived_at))
            _add(result, ledger, before_fault_us)
        return result


def _add(result: Report, ledger: Ledger, before_fault_us: int) -> None:
    duplicates, unexplained = ledger.duplicates(before_fault_us)
    result.duplicates += duplicates
    result.unexplained += unexplained
    result.lost += ledger.missing()
    result.early += ledger.early()
    result.after_change += ledger.after_change()
    for timer, changes in ledger.changes.items():
        _count(result, changes)
        due = {change.version: change.execute_at for change in changes}
        receipts = ledger.receipts[timer]
        result.calls += len(receipts)
        for receipt in receipts:
            result.latest_s = max(result.latest_s, (receipt.arrived_at - due[receipt.version]) / 1e6)
        if ledger.owes(timer):
            result.owed += 1
            last = max((change.version for change in changes if change.acked_at is not None), default=-1)
            fired = {receipt.version for receipt in receipts}
            if last in fired:
                result.fired_for_last_acknowledged += 1
            elif any(version > last for version in fired):
                result.fired_for_unknown_outcome += 1


def _count(result: Report, changes: list[Change]) -> None:
    made = False
    for change in changes:
        if change.refused:
            result.refused += 1
        elif change.acked_at is None:
            result.outcome_unknown += 1
        elif change.deletes:
            result.deletes_acknowledged += 1
        elif made:
            result.updates_acknowledged += 1
        else:
            made = True
            result.creates_acknowledged += 1

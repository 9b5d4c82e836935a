"""The books of an account of very many timers: what clients were told, what the receiver got, and the balance."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.crash.account_receiver import CALL
from tests.crash.ledger import Change, Ledger, Receipt

_CHANGE = struct.Struct("<IIBqqq")
_DELETES, _ACKNOWLEDGED, _REFUSED = 1, 2, 4
#: Timers that are looked at together, so that memory holds the objects of these alone.
_SLICE_TIMERS = 250_000


@dataclass
class Balance:
    """How the account came out. The four lists, from `lost` on, have to be empty."""

    timers: int = 0
    creates_acknowledged: int = 0
    updates_acknowledged: int = 0
    deletes_acknowledged: int = 0
    #: Updates and deletes that came after the timer had rung.
    refused: int = 0
    #: Writes that nobody could say about; each was sent again.
    in_doubt: int = 0
    #: Timers that had to ring, and by which write they did.
    owed: int = 0
    rang_for_last_acknowledged: int = 0
    rang_for_one_in_doubt: int = 0
    calls: int = 0
    duplicates: int = 0
    latest_s: float = 0.0
    failures: dict[str, int] = field(default_factory=dict)
    lost: list[object] = field(default_factory=list)
    early: list[object] = field(default_factory=list)
    after_change: list[object] = field(default_factory=list)
    unexplained: list[object] = field(default_factory=list)

    @property
    def balances(self) -> bool:
        """Whether every promise was kept, and every timer is accounted for."""
        rang = self.rang_for_last_acknowledged + self.rang_for_one_in_doubt
        wrong = self.lost or self.early or self.after_change or self.unexplained
        return not wrong and rang == self.owed and self.creates_acknowledged >= self.timers

    def lines(self) -> Iterator[str]:
        """The account as text."""
        for name, value in asdict(self).items():
            shown = len(value) if isinstance(value, list) else value
            yield f"{name.replace('_', ' '):28} {shown:,}" if isinstance(shown, int) else f"{name:28} {shown}"
            if isinstance(value, list):
                yield from (f"    {entry}" for entry in value[:5])
        yield f"{'balances':28} {'yes' if self.balances else 'NO'}"


class Book:
    """Every write that clients sent, in the order in which each timer's were; a few octets each."""

    def __init__(self) -> None:
        self.timers = 0
        self.failures: Counter[str] = Counter()
        #: When something broke, in microseconds of this machine's clock.
        self.faults: list[int] = []
        self._changes = bytearray()
        self._count = 0

    def sent(self, number: int, execute_at: int, sent_at: int, *, deletes: bool = False) -> int:
        """Notes a write before it is sent; returns its version, to stand in the payload."""
        flags = _DELETES if deletes else 0
        self._changes += _CHANGE.pack(number, self._count, flags, sent_at, execute_at, 0)
        self._count += 1
        return self._count - 1

    def acknowledged(self, version: int, at: int) -> None:
        """The client was told that it is done."""
        self._mark(version, _ACKNOWLEDGED, at)

    def refused(self, version: int) -> None:
        """The client was told that it wasn't done, since the timer isn't pending."""
        self._mark(version, _REFUSED, 0)

    def _mark(self, version: int, flag: int, at: int) -> None:
        place = version * _CHANGE.size
        number, _, flags, sent_at, execute_at, _ = _CHANGE.unpack_from(self._changes, place)
        _CHANGE.pack_into(self._changes, place, number, version, flags | flag, sent_at, execute_at, at)

    def balance(self, calls: Path, before_fault_us: int) -> Balance:
        """Compares with what the receiver wrote down. A duplicate is explained when the former call had arrived so shortly
        before a fault."""
        result = Balance(timers=self.timers, failures=dict(self.failures))
        octets = calls.read_bytes()
        for first in range(0, self.timers, _SLICE_TIMERS):
            ledger = Ledger(kills=self.faults)
            within = range(first, first + _SLICE_TIMERS)
            for number, version, flags, sent_at, execute_at, acked_at in _CHANGE.iter_unpack(self._changes):
                if number in within:
                    change = Change(version, bool(flags & _DELETES), sent_at, execute_at, acked_at or None)
                    change.refused = bool(flags & _REFUSED)
                    ledger.changes[str(number)].append(change)
            for number, version, attempt, fired_at, arrived_at in CALL.iter_unpack(octets):
                if number in within:
                    ledger.receipts[str(number)].append(Receipt(version, attempt, fired_at, arrived_at))
            _add(result, ledger, before_fault_us)
        return result


def _add(result: Balance, ledger: Ledger, before_fault_us: int) -> None:
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
            rung = {receipt.version for receipt in receipts}
            if last in rung:
                result.rang_for_last_acknowledged += 1
            elif any(version > last for version in rung):
                result.rang_for_one_in_doubt += 1


def _count(result: Balance, changes: list[Change]) -> None:
    made = False
    for change in changes:
        if change.refused:
            result.refused += 1
        elif change.acked_at is None:
            result.in_doubt += 1
        elif change.deletes:
            result.deletes_acknowledged += 1
        elif made:
            result.updates_acknowledged += 1
        else:
            made = True
            result.creates_acknowledged += 1

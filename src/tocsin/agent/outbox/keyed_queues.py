"""Which row of which aggregate may go next: one at a time, in the order of their numbers. Pure."""

from __future__ import annotations

from bisect import insort

from tocsin.agent.outbox.ports import OutboxRow


class KeyedQueues:
    """One line per aggregate; its head is under way, the others wait. An aggregate without rows costs nothing."""

    def __init__(self) -> None:
        # None: the head alone. Most lines never hold more, and a list for each would cost more than all else here.
        self._waiting: dict[str, list[OutboxRow] | None] = {}

    def push(self, row: OutboxRow) -> bool:
        """Puts the row into its line; True when it is the head now and may go."""
        aggregate_id = row.envelope.aggregate_id
        if aggregate_id not in self._waiting:
            self._waiting[aggregate_id] = None
            return True
        waiting = self._waiting[aggregate_id]
        if not waiting:
            self._waiting[aggregate_id] = [row]
        elif waiting[-1].number < row.number:
            waiting.append(row)
        else:
            insort(waiting, row, key=_number)
        return False

    def pop(self, row: OutboxRow) -> OutboxRow | None:
        """The head is done with; returns the next one, which may go."""
        aggregate_id = row.envelope.aggregate_id
        waiting = self._waiting[aggregate_id]
        if not waiting:
            del self._waiting[aggregate_id]
            return None
        return waiting.pop(0)


def _number(row: OutboxRow) -> int:
    return row.number

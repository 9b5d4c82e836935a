"""Per-key queues: of each aggregate, one outbox row is in flight at a time, in the order of row numbers. Pure."""

from __future__ import annotations

from bisect import insort

from tocsin.service_calls.outbox.ports import OutboxRow


class KeyedQueues:
    """One queue for each aggregate. Its head is in flight, the others wait. An aggregate without rows takes no memory."""

    def __init__(self) -> None:
        # None: the head alone. Most queues never have more, and a list for each would cost most of the memory here.
        self._waiting: dict[str, list[OutboxRow] | None] = {}

    def push(self, row: OutboxRow) -> bool:
        """Adds the row to its queue. Returns True if it is the head and may be sent."""
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
        """Removes the head. Returns the next row, which may be sent, or None."""
        aggregate_id = row.envelope.aggregate_id
        waiting = self._waiting[aggregate_id]
        if not waiting:
            del self._waiting[aggregate_id]
            return None
        return waiting.pop(0)


def _number(row: OutboxRow) -> int:
    return row.number

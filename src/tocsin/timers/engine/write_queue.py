"""The writes of one shard under one claim that wait for a batch, and the generations that they get when they are accepted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from tocsin.ports.store import generation
from tocsin.timers.engine.flow_tokens import TokenRows
from tocsin.timers.engine.parts import Creates, Part
from tocsin.timers.engine.rows import Batch, WriteOp


class WriteQueue:
    """Operations and parts, in the order in which they were accepted. It knows nothing of the timers that they change."""

    __slots__ = ("_claim", "_firings", "_sequence", "entries", "superseding", "tokens")

    def __init__(self, epoch: int, incarnation: bytes) -> None:
        self.entries: deque[WriteOp | Part] = deque()
        #: How many operations on a uuid that supersede results were accepted, and are neither durable nor refused.
        self.superseding: dict[bytes, int] = {}
        self._sequence = 0
        #: Tokens of slow rates whose home is the shard.
        self.tokens = TokenRows()
        # A generation without its sequence number.
        self._claim = generation(epoch, incarnation, 0)[:-8]
        # How the names of its firings begin.
        self._firings = f"{epoch:x}-"

    def next_generation(self) -> bytes:
        """A generation greater than all before."""
        self._sequence += 1
        return self._claim + self._sequence.to_bytes(8, "big")

    def firing_of(self, op: WriteOp) -> str:
        """The name of the firing that an accepted operation begins."""
        return self._firings + op.generation[-8:].hex().lstrip("0")

    def add_creates(self, creates: Creates, deadline_us: int | None) -> None:
        """Adds plain creates, each with a generation and a firing of its own, to the last part if they may join it, or as
        another one."""
        part, sequence = self.entries[-1] if self.entries else None, self._sequence + 1
        if type(part) is not Part or not part.may_take(len(creates.uuids), sequence, deadline_us):
            part = Part(self._claim, self._firings, sequence, deadline_us)
            self.entries.append(part)
        part.add(creates)
        superseding = self.superseding
        for uuid in creates.uuids:
            superseding[uuid] = superseding.get(uuid, 0) + 1
        self._sequence += len(creates.uuids)

    def forget(self, uuids: Iterable[bytes]) -> None:
        """For each of these uuids, one of the operations that supersede its results is durable or refused."""
        superseding = self.superseding
        for uuid in uuids:
            left = superseding[uuid] - 1
            if left:
                superseding[uuid] = left
            else:
                del superseding[uuid]

    def take_apart(self, part: Part) -> None:
        """The creates of the first entry go on as operations."""
        assert self.entries[0] is part
        self.entries.popleft()
        self.entries.extendleft(reversed(part.operations()))

    def put_back(self, batch: Batch) -> None:
        """The operations of a batch return to the front, and those of parts among them, so that one that can't be written
        refuses no other."""
        ops = batch.ops.copy()
        for part, position, _ in reversed(batch.parts):
            ops[position:position] = part.operations()
        self.entries.extendleft(reversed(ops))

    def remove(self, unwanted: Callable[[WriteOp | Part], bool]) -> list[WriteOp | Part]:
        """Removes such entries; returns them in their order."""
        removed = [entry for entry in self.entries if unwanted(entry)]
        if removed:
            gone = set(removed)
            kept = [entry for entry in self.entries if entry not in gone]
            self.entries.clear()
            self.entries.extend(kept)
        return removed

    @property
    def operations(self) -> int:
        """How many operations wait, those of parts included."""
        return len(self.entries) + sum(len(each) - 1 for each in self.entries if type(each) is Part)

"""Plain creates for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.support.completions import Noted
from tocsin.model.errors import TocsinError
from tocsin.model.timer import Timer
from tocsin.timers.engine.parts import Creates, operation
from tocsin.timers.engine.rows import Row, WriteOp


class NotedCreates(Creates):
    """Creates that are given with their uuids, and with functions to which their results are passed: rows or errors."""

    def __init__(self, *creates: tuple[bytes, Timer, Callable[[Any], object]]) -> None:
        super().__init__()
        self.uuids, self.timers, self._notes = ([*each] for each in zip(*creates, strict=True))
        self.deadline_us = None

    def operations(self) -> list[WriteOp]:
        ops = [operation(uuid, timer, self.deadline_us) for uuid, timer in zip(self.uuids, self.timers, strict=True)]
        for op, note in zip(ops, self._notes, strict=True):
            op.completion = Noted(note)
        return ops

    def _resolved(self, rows: Sequence[Row]) -> None:
        for note, row in zip(self._notes, rows, strict=True):
            note(row)

    def _refused(self, error: TocsinError) -> None:
        for note in self._notes:
            note(error)

    def _failed(self, error: Exception) -> None:
        raise error

"""The owners of one shard, and their batches under way, in the interleavings."""

from __future__ import annotations

from tests.support.checked_window import CheckedWindow
from tocsin.model.errors import DefiniteFailure
from tocsin.ports.store import Applied, Loaded
from tocsin.timers.engine.rows import Batch, LoadRequest, Row


class Letter:
    """A batch on its way to the store, or its answer on the way back."""

    def __init__(self, owner: Owner, batch: Batch) -> None:
        self.owner = owner
        self.batch = batch
        self.result: Applied | DefiniteFailure | None = None


class Owner:
    """The owner of one claim, in place of the engine around the window."""

    def __init__(self, node: int, window: CheckedWindow, now: int) -> None:
        self.node = node
        self.incarnation = window.incarnation
        self.window = window
        self.letter: Letter | None = None
        self.load: tuple[LoadRequest, Loaded | None] | None = None
        self.waiting: list[Row] = []
        self.cut: int | None = None
        self.last_beat = now
        self.cut_off = False

"""What runs in a thread until it is to end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from threading import Event as Stop
from types import TracebackType


class Background:
    """Runs in a thread, which `stop` ends after its round, as does the end of a `with` statement. The end of the program does
    not wait for it: what it has not settled is done again."""

    def __init__(self, run: Callable[[Stop], None]) -> None:
        self._stop = Stop()
        self._thread = threading.Thread(target=run, args=(self._stop,), name="tocsin-outbox", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Returns when it has ended."""
        self._stop.set()
        self._thread.join()

    def __enter__(self) -> Background:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


__all__ = ["Background", "Stop"]

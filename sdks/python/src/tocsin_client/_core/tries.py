"""What became of each try of a call: for the user's hook, and for the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

_log = logging.getLogger("tocsin_client")


@dataclass(frozen=True)
class Try:
    """One request of a call, and what became of it."""

    #: The operation's name, such as createTimer, as in the server's OpenAPI document.
    operation: str
    #: Counts the call's tries from 1.
    number: int
    #: Of the answer; None: there was none.
    status: int | None
    #: The answer's error code, such as NOT_READY; None if it has none.
    code: str | None
    #: Why there was no answer.
    error: str | None
    #: How long it took.
    seconds: float
    #: Before the next try; None: there is none.
    pause_seconds: float | None

    def __str__(self) -> str:
        outcome = self.error if self.status is None else f"{self.status} {self.code or ''}".rstrip()
        line = f"{self.operation}, try {self.number}: {outcome} in {self.seconds:.3f} s"
        return line if self.pause_seconds is None else f"{line}, next try in {self.pause_seconds:.3f} s"


def is_reported(on_try: Callable[[Try], None] | None) -> bool:
    """Whether anybody wants to know."""
    return on_try is not None or _log.isEnabledFor(logging.DEBUG)


def report(made: Try, on_try: Callable[[Try], None] | None) -> None:
    """Logs the try and calls the hook, whose errors are logged: they concern the hook, not the call."""
    _log.debug("%s", made)
    if on_try is not None:
        try:
            on_try(made)
        except Exception:  # noqa: BLE001 (logged; the call goes on)
            _log.exception("on_try failed; the call goes on")

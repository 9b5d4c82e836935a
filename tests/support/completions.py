"""Completions for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tocsin.model.errors import TocsinError
from tocsin.ports.completion import Completion


class Noted(Completion[Any]):
    """Passes the result of an operation, its value or its error, to a function."""

    def __init__(self, note: Callable[[Any], object]) -> None:
        super().__init__()
        self._note = note

    def _resolved(self, value: Any) -> None:
        self._note(value)

    def _refused(self, error: TocsinError) -> None:
        self._note(error)

    def _failed(self, error: Exception) -> None:
        raise error


def complete(completion: Completion[Any], result: object) -> None:
    """Completes with the value, or refuses with the error."""
    if isinstance(result, TocsinError):
        completion.refuse(result)
    else:
        completion.resolve(result)

"""How the result of an operation reaches who waits for it: a request's client, another node, a coroutine."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

from tocsin.model.errors import TocsinError, Unavailable

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class Completion(Generic[T_contra]):
    """Takes the result of one operation, once: `resolve` with its value, `refuse` with an error that the receiver gets,
    `fail` with any other exception, which is a defect.

    Whoever takes a completion completes it on every path; whoever raises has not taken it, and leaves it to the caller. The
    first result counts. Later values and refusals are ignored, since an operation may end at the moment of its deadline; a
    later failure is reported to the event loop. Completing never raises: the engine does it, which an error of the receiver
    must not reach. Such an error becomes the failure.

    A subclass is a kind of receiver. It defines what happens, in `_resolved`, `_refused` and `_failed`. It may set
    `completed` itself instead of calling `__init__`, which costs as much as the rest of a small completion.
    """

    __slots__ = ("completed",)

    def __init__(self) -> None:
        self.completed = False

    def resolve(self, value: T_contra) -> None:
        """The operation has this result."""
        if self.completed:
            return
        self.completed = True
        try:
            self._resolved(value)
        except Exception as error:  # noqa: BLE001 -- it must not reach the engine
            self._fail(error)

    def refuse(self, error: TocsinError) -> None:
        """The operation ends with this error; its class states what became of the operation."""
        if self.completed:
            return
        self.completed = True
        try:
            self._refused(error)
        except Exception as defect:  # noqa: BLE001 -- as above
            self._fail(defect)

    def fail(self, error: Exception) -> None:
        """The operation was broken off by this exception."""
        if self.completed:
            _report(error)
            return
        self.completed = True
        self._fail(error)

    async def follow(self, operation: Awaitable[T_contra]) -> None:
        """Completes with what the awaitable returns or raises, also if it is cancelled."""
        try:
            self.resolve(await operation)
        except TocsinError as error:
            self.refuse(error)
        except Exception as error:  # noqa: BLE001 -- the receiver gets it
            self.fail(error)
        except BaseException:
            self.refuse(Unavailable("the node is stopping; the outcome is unknown, try again"))
            raise

    def _fail(self, error: Exception) -> None:
        try:
            self._failed(error)
        except Exception as defect:  # noqa: BLE001 -- as above
            _report(defect)

    @abstractmethod
    def _resolved(self, value: T_contra) -> None:
        """Receives the value."""

    @abstractmethod
    def _refused(self, error: TocsinError) -> None:
        """Receives the error."""

    @abstractmethod
    def _failed(self, error: Exception) -> None:
        """Receives the exception, perhaps one that `_resolved` or `_refused` has raised. What it raises is reported to the
        event loop."""


class Awaited(Completion[T]):
    """The completion of a coroutine, which awaits it once: it returns the value, or raises the error. If the coroutine was
    cancelled, the result has no receiver."""

    __slots__ = ("_future",)

    def __init__(self) -> None:
        super().__init__()
        self._future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def __await__(self) -> Generator[Any, None, T]:
        return self._future.__await__()

    def _resolved(self, value: T) -> None:
        if not self._future.done():
            self._future.set_result(value)

    def _refused(self, error: TocsinError) -> None:
        self._failed(error)

    def _failed(self, error: Exception) -> None:
        if not self._future.done():
            self._future.set_exception(error)


def _report(error: Exception) -> None:
    context = {"message": "an operation failed after its completion", "exception": error}
    asyncio.get_running_loop().call_exception_handler(context)

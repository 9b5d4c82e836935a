"""A completion takes one result, whatever follows, and never raises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.completions import Noted

from tocsin.model.errors import Overloaded, RequestExpired, TocsinError, Unavailable
from tocsin.ports.completion import Awaited, Completion

Complete = Callable[[Completion[Any]], None]


def resolve(completion: Completion[Any]) -> None:
    completion.resolve(1)


def refuse(completion: Completion[Any]) -> None:
    completion.refuse(Overloaded("full"))


def fail(completion: Completion[Any]) -> None:
    completion.fail(ValueError("a defect"))


class Recorder(Completion[object]):
    """Records each of its results; while `defects` are left, taking a result raises."""

    def __init__(self, defects: int = 0) -> None:
        super().__init__()
        self.results: list[tuple[str, object]] = []
        self._defects = defects

    def _take(self, kind: str, result: object) -> None:
        self.results.append((kind, result))
        if self._defects:
            self._defects -= 1
            raise LookupError(kind)

    def _resolved(self, value: object) -> None:
        self._take("resolved", value)

    def _refused(self, error: TocsinError) -> None:
        self._take("refused", error)

    def _failed(self, error: Exception) -> None:
        self._take("failed", error)


@pytest.fixture
async def reported() -> list[Exception]:
    """The exceptions that the event loop gets."""
    found: list[Exception] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: found.append(context["exception"]))
    return found


@pytest.mark.parametrize("first", [resolve, refuse, fail])
async def test_the_first_result_counts_and_a_later_failure_is_reported(
    first: Complete, reported: list[Exception]
) -> None:
    recorder = Recorder()
    for complete in (first, resolve, refuse):
        complete(recorder)
    assert len(recorder.results) == 1
    assert reported == []
    fail(recorder)
    assert len(recorder.results) == 1
    assert [str(error) for error in reported] == ["a defect"]


@pytest.mark.parametrize("complete", [resolve, refuse])
async def test_an_error_of_the_receiver_becomes_the_failure(complete: Complete, reported: list[Exception]) -> None:
    recorder = Recorder(defects=1)
    complete(recorder)
    assert [kind for kind, _ in recorder.results][1:] == ["failed"]
    assert isinstance(recorder.results[1][1], LookupError)
    assert reported == []


async def test_an_error_in_taking_the_failure_is_reported(reported: list[Exception]) -> None:
    fail(Recorder(defects=1))
    resolve(Recorder(defects=2))
    assert [str(error) for error in reported] == ["failed", "failed"]


async def test_a_coroutine_gets_the_value_or_the_error() -> None:
    async def result_of(complete: Complete) -> object:
        awaited: Awaited[object] = Awaited()
        asyncio.get_running_loop().call_soon(complete, awaited)
        return await awaited

    assert await result_of(resolve) == 1
    with pytest.raises(Overloaded):
        await result_of(refuse)
    with pytest.raises(ValueError, match="a defect"):
        await result_of(fail)


@pytest.mark.parametrize("complete", [resolve, refuse, fail])
async def test_a_result_for_a_cancelled_coroutine_is_dropped(complete: Complete, reported: list[Exception]) -> None:
    awaited: Awaited[object] = Awaited()
    waiting = asyncio.ensure_future(awaited)
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    complete(awaited)
    assert reported == []


@pytest.mark.parametrize("error", [None, RequestExpired("late"), ValueError("a defect")])
async def test_what_an_awaitable_returns_or_raises_is_the_result(error: Exception | None) -> None:
    async def operation() -> int:
        await asyncio.sleep(0)
        if error is not None:
            raise error
        return 1

    recorder = Recorder()
    await recorder.follow(operation())
    kind = "resolved" if error is None else "refused" if isinstance(error, TocsinError) else "failed"
    assert recorder.results == [(kind, 1 if error is None else error)]


async def test_a_cancelled_operation_is_refused_as_unknown() -> None:
    results: list[object] = []
    following = asyncio.ensure_future(Noted(results.append).follow(asyncio.Event().wait()))
    await asyncio.sleep(0)
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    (error,) = results
    assert isinstance(error, Unavailable)

"""Many quick cases as one test: collecting an item, and its set-up, take longer than such a case."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

_FAILURES = (Exception, pytest.fail.Exception)
F = TypeVar("F", bound=Callable[..., Any])


def each(names: str, cases: Iterable[Any]) -> Callable[[F], F]:
    """Calls the test with each case, as `pytest.mark.parametrize` does, in one item. All cases run; those that fail are
    reported together, each with its values. Fixtures are shared by the cases, so use it where no case changes anything."""
    wanted = [name.strip() for name in names.split(",")]
    given = [dict(zip(wanted, case if len(wanted) > 1 else (case,), strict=True)) for case in cases]
    assert given, "there are no cases"

    def decorate(test: F) -> F:
        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            failed = []
            for case in given:
                try:
                    test(*args, **fixtures, **case)
                except _FAILURES as error:
                    failed.append(_with(error, case))
            _report(failed)

        @functools.wraps(test)
        async def run_coroutine(*args: Any, **fixtures: Any) -> None:
            failed = []
            for case in given:
                try:
                    await test(*args, **fixtures, **case)
                except _FAILURES as error:
                    failed.append(_with(error, case))
            _report(failed)

        chosen: Any = run_coroutine if inspect.iscoroutinefunction(test) else run
        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in wanted]
        chosen.__signature__ = signature.replace(parameters=left)
        return chosen  # type: ignore[no-any-return]

    return decorate


def _with(error: BaseException, case: dict[str, Any]) -> BaseException:
    error.add_note(", ".join(f"{name}={value!r:.300}" for name, value in case.items()))
    return error


def _report(failed: list[BaseException]) -> None:
    if failed:
        raise BaseExceptionGroup(f"cases that failed: {len(failed)}", failed)

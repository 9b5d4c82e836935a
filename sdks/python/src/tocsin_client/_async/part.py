"""What timers, schedules and the other parts of a client have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tocsin_client._async.runner import Runner
from tocsin_client._core import flows
from tocsin_client._core.session import Call, Options, Session
from tocsin_client._core.steps import Result, Steps
from tocsin_client._values import JsonValue


class Part:
    """A group of operations."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    @property
    def _session(self) -> Session:
        return self._runner.session

    @property
    def _options(self) -> Options:
        return self._runner.options

    async def _run(self, steps: Steps[Result]) -> Result:
        return await self._runner.run(steps)

    def _ask(
        self,
        operation: str,
        read: Callable[[Mapping[str, Any]], Result],
        body: Mapping[str, JsonValue] | None = None,
        *,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, str | Sequence[str]] | None = None,
        safe: bool = True,
    ) -> Steps[Result]:
        return flows.ask(self._session, operation, read, body, options=self._options, path=path, query=query, safe=safe)

    def _put(
        self,
        operation: str,
        read: Callable[[Mapping[str, Any]], Result],
        body: Mapping[str, JsonValue],
        get: str,
        name: Mapping[str, JsonValue],
    ) -> Steps[Result]:
        return flows.put(self._session, operation, read, body, Call(get, name), self._options)

"""The driver's side of the harness: a driver asks for one step after another, over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from .http import Request, Response, json_response
from .scenarios import STEP_TIMEOUT_S, Results

Json = dict[str, Any]


class DriverGone(Exception):
    """The driver did not report the outcome of a step in time."""


class Control:
    """Answers `POST /next`: the body is the outcome of the step before, the response the next step. The first body lists
    what the driver can do."""

    def __init__(self) -> None:
        self._steps: asyncio.Queue[Json] = asyncio.Queue()
        self._outcomes: asyncio.Queue[Json] = asyncio.Queue()

    async def __call__(self, request: Request) -> Response | None:
        """Handles a request of the driver."""
        if (request.method, request.target) != ("POST", "/next"):
            return json_response({"message": "a driver sends POST /next"}, 404)
        self._outcomes.put_nowait(json.loads(request.body))
        return json_response(await self._steps.get())

    async def hello(self) -> list[str]:
        """What the driver can do. Raises DriverGone."""
        outcome = await self._outcome("its start")
        return list(outcome["hello"]["can"])

    async def perform(self, step: Json) -> Json:
        """Has the driver take a step, and returns the outcome. Raises DriverGone."""
        self._steps.put_nowait(step)
        return await self._outcome(step["do"])

    def end(self, results: Results) -> None:
        """Sends the driver the results, which it prints."""
        self._steps.put_nowait({"done": True, "failures": results.failures, "summary": results.summary})

    async def _outcome(self, what: str) -> Json:
        try:
            async with asyncio.timeout(STEP_TIMEOUT_S):
                return await self._outcomes.get()
        except TimeoutError:
            raise DriverGone(f"the driver did not report on {what} within {STEP_TIMEOUT_S:g} s") from None

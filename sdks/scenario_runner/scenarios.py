"""The scenarios and vectors as a driver goes through them: what it does next, and whether what it did is right."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tocsin.model.ids import Uuid7Source
from tocsin.model.instants import format_instant, parse_duration, parse_instant

from .expectations import at_path, differences, filled
from .http import Response
from .proxy import Proxy
from .receiver import Receiver

Json = dict[str, Any]

#: How long a driver may take for a step, and the server until all that is due is done.
STEP_TIMEOUT_S = 60.0
_AT = re.compile(r"now([+-])(.+)")


@dataclass
class Results:
    """What came of the scenarios and vectors with a driver. `of` names it in what is printed: several run at a time."""

    of: str
    passed: int = 0
    failures: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """The line that drivers print."""
        return f"{self.of}: {self.passed} passed, {len(self.failures)} failed"


class Failed(Exception):
    """A step did not do what is expected."""


#: Has the driver take a step (`do`, `with`, `client`, `cancelAfterMs`), and returns its outcome.
Perform = Callable[[Json], Any]


class World:
    """The server and what surrounds it. `url` is the server's own; it requires no key, and knows `admin_key`."""

    def __init__(self, url: str, admin_key: str) -> None:
        self.admin_key = admin_key
        self.receiver = Receiver()
        self.proxy = Proxy(url, self.advance)
        #: The receiver's URL, without a path.
        self.hook = ""
        self._api = httpx.AsyncClient(base_url=url, timeout=STEP_TIMEOUT_S)
        self._advancing: asyncio.Task[None] | None = None

    async def version(self) -> tuple[int, ...]:
        """The server's release: its first two numbers."""
        described = (await self._api.get("/api/v1/openapi.json")).json()
        return _version(described["info"]["version"])

    async def call(self, path: str, body: Json) -> Json:
        """A direct request to the server, without the proxy. Raises Failed unless it succeeds."""
        answer = await self._api.post(f"/api/v1/{path}", json=body)
        if answer.status_code >= 300:
            raise Failed(f"{path}: the server answered {answer.status_code} {answer.text}")
        return dict(answer.json()) if answer.content else {}

    async def now_us(self) -> int:
        """What the server's clock shows."""
        return parse_instant((await self.call("dev/clock/get", {}))["now"])

    async def advance(self, by: str) -> None:
        """Moves the server's clock. Returns when all that fell due is done, or a callback waits for the driver: the clock
        moves on once that is answered."""
        self._advancing = asyncio.create_task(self._advance(by, self._advancing))
        waiting = asyncio.create_task(self.receiver.waiting.wait())
        await asyncio.wait((self._advancing, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._advancing.done():
            await self.settle()

    async def _advance(self, by: str, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await before
        await self.call("dev/clock/advance", {"by": by})

    async def settle(self) -> None:
        """Returns when the clock is where it was moved to."""
        task, self._advancing = self._advancing, None
        if task is not None:
            await task

    async def begin(self, path: str) -> None:
        """Leaves nothing of the scenario before; callbacks are expected at the path."""
        self.proxy.begin()
        self.receiver.begin(path)
        with contextlib.suppress(Failed):
            await self.settle()

    async def close(self) -> None:
        """Closes its connections."""
        await self.begin("")
        await self._api.aclose()


class Scenario:
    """One run of a scenario: its steps, and the values that they have saved."""

    def __init__(self, described: Json, world: World, perform: Perform) -> None:
        self._described = described
        self._world = world
        self._perform = perform
        self._saved: Json = {}
        self._now_us = 0
        self._own = {
            "fault": self._fault, "requests": self._requests, "callbacks": self._callbacks, "advance": self._advance,
            "answers": self._answers, "receive": self._receive, "server": self._server,
        }  # fmt: skip

    async def run(self) -> None:
        """Takes the steps. Raises Failed with the first one that fails."""
        world = self._world
        run = uuid.uuid4().hex[:12]
        await world.begin(f"/{run}")
        self._now_us = await world.now_us()
        self._saved = {
            "run": run, "namespace": f"sdk-{run}", "hook": f"{world.hook}/{run}",
            "tenant": Uuid7Source(lambda: self._now_us)(), "node0": world.proxy.url(0), "node1": world.proxy.url(1),
            "adminKey": world.admin_key,
        }  # fmt: skip
        world.receiver.by_driver = self._described.get("receiver") == "driver"
        await world.call(
            "namespaces/create", {"name": self._saved["namespace"], **self._described.get("namespace", {})}
        )
        for number, step in enumerate(self._described["steps"], 1):
            for turn in range(1, step.get("repeat", 1) + 1):
                self._saved["turn"] = turn
                try:
                    await self._step(step)
                except Failed as error:
                    raise Failed(
                        f"step {number}{f', turn {turn}' if turn > 1 else ''}, {step['do']}: {error}"
                    ) from error

    async def _step(self, step: Json) -> None:
        given = filled(step.get("with", {}), self._value_of)
        own = self._own.get(step["do"])
        outcome = {"value": await own(given)} if own is not None else await self._call(step, given)
        if "expectError" in step:
            self._check_error(filled(step["expectError"], self._value_of), outcome)
            return
        if "error" in outcome:
            raise Failed(f"it failed: {json.dumps(outcome['error'])}")
        value = outcome.get("value")
        if "expect" in step:
            _check(filled(step["expect"], self._value_of), value)
        for name, path in step.get("save", {}).items():
            try:
                self._saved[name] = at_path(value, path)
            except KeyError as error:
                raise Failed(str(error)) from error

    async def _call(self, step: Json, given: Json) -> Json:
        client = {"url": self._world.proxy.url(), **self._described.get("client", {}), **step.get("client", {})}
        # Drivers keep no client beyond its scenario: what it has learned of the server must not help the next one.
        sent = {
            "do": step["do"], "with": given, "client": filled(client, self._value_of), "scenario": self._saved["run"],
        }  # fmt: skip
        if "cancelAfterMs" in step:
            sent["cancelAfterMs"] = step["cancelAfterMs"]
        return dict(await self._perform(sent))

    @staticmethod
    def _check_error(expected: Any, outcome: Json) -> None:
        if "error" not in outcome:
            raise Failed(f"expected the error {expected!r}, got {outcome.get('value')!r}")
        error = outcome["error"]
        _check({"classes": {"$contains": expected}} if isinstance(expected, str) else expected, error)

    def _value_of(self, name: str) -> Any:
        """A saved value, a part of one (`timer.id`), or an instant relative to the scenario's beginning (`now+1h`)."""
        if name == "now":
            return format_instant(self._now_us)
        if relative := _AT.fullmatch(name):
            distance = parse_duration(relative[2])
            return format_instant(self._now_us + (distance if relative[1] == "+" else -distance))
        first, _, rest = name.partition(".")
        try:
            return at_path(self._saved[first], rest)
        except KeyError:
            raise Failed(f"there is no value ${{{name}}}; save it in a step before") from None

    # ------------------------------------------------------------------ steps of the harness itself

    async def _fault(self, given: Json) -> None:
        self._world.proxy.add(given)

    async def _requests(self, given: Json) -> list[Json]:
        """What the proxy received since the beginning, or since this was asked last."""
        found, self._world.proxy.requests = self._world.proxy.requests, []
        return [entry for entry in found if not differences(given, entry)]

    async def _callbacks(self, given: Json) -> list[Json]:
        """The callbacks since the beginning."""
        return self._world.receiver.callbacks

    async def _advance(self, given: Json) -> None:
        await self._world.advance(given["by"])

    async def _answers(self, given: Json) -> None:
        self._world.receiver.answer_with(given["answers"])

    async def _server(self, given: Json) -> Json:
        return await self._world.call(given["path"], given["body"])

    async def _receive(self, given: Json) -> Json:
        """Passes the next callback to the driver, and its answer to the server; with `lose`, the answer is lost."""
        try:
            async with asyncio.timeout(STEP_TIMEOUT_S):
                request, answered = await self._world.receiver.next()
        except TimeoutError:
            raise Failed("no callback arrived") from None
        lose, changes = given.pop("lose", False), given.pop("change", {})
        request = {**request, **changes, "headers": _changed(request["headers"], changes.get("headers", {}))}
        sent = {"secrets": [], "unsigned": False, **given, "request": request}
        outcome = await self._perform({"do": "receiver.handle", "with": sent, "client": {}})
        if "error" in outcome:
            answered.set_result(None)
            raise Failed(f"the receiver failed: {json.dumps(outcome['error'])}")
        handled: Json = outcome["value"]
        body = (handled.get("body") or "").encode()
        response = Response(handled["status"], list(handled.get("headers", {}).items()), body)
        answered.set_result(None if lose else response)
        return handled


def _changed(headers: list[list[str]], changes: Json) -> list[list[str]]:
    """The headers with others of these names; null removes one, `{}` stands for the former value."""
    former = {name.lower(): value for name, value in headers}
    kept = [[name, value] for name, value in headers if name.lower() not in changes]
    return kept + [
        [name, value.replace("{}", former.get(name, ""))] for name, value in changes.items() if value is not None
    ]


def _check(expected: Any, actual: Any) -> None:
    if found := differences(expected, actual):
        raise Failed("; ".join(found))


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


async def run_all(sdks: Path, world: World, can: list[str], perform: Perform, results: Results) -> None:
    """Runs all vectors and scenarios with a driver that `can` do these things."""
    async for case, expected, sent in _vectors(sdks, can, results):
        outcome = await perform(sent)
        if "error" in expected:
            value = outcome.get("value")
            error = outcome.get("error") or (value.get("error") if isinstance(value, dict) else None)
            wanted = expected["error"] if isinstance(expected["error"], dict) else {"$any": True}
            found = differences(wanted, error, "error") if error is not None else [f"expected an error, got {value!r}"]
        elif "error" in outcome:
            found = [f"it failed: {json.dumps(outcome['error'])}"]
        else:
            found = differences(expected, outcome.get("value"))
        _count(case, "; ".join(found), results)
    version = await world.version()
    for name, described in scenarios(sdks):
        missing = [need for need in described.get("needs", []) if need not in can]
        if missing or _version(described.get("since", "0.1")) > version:
            reason = (
                f"the driver lacks {', '.join(missing)}"
                if missing
                else f"the server is older than {described['since']}"
            )
            results.skipped.append(f"{name}: {reason}")
            continue
        failure = ""
        try:
            await Scenario(described, world, perform).run()
        except Failed as error:
            failure = str(error)
        _count(name, failure, results)


def scenarios(sdks: Path) -> list[tuple[str, Json]]:
    """All scenarios with their names, as they are written."""
    return [
        (f"{path.stem}: {described['name']}", described)
        for path in sorted((sdks / "scenarios").glob("*.json"))
        for described in json.loads(path.read_text())["scenarios"]
    ]


async def _vectors(sdks: Path, can: list[str], results: Results) -> AsyncIterator[tuple[str, Json, Json]]:
    for path in sorted((sdks / "vectors").glob("*.json")):
        read = json.loads(path.read_text())
        if missing := [need for need in read.get("needs", []) if need not in can]:
            results.skipped.append(f"vectors {path.stem}: the driver lacks {', '.join(missing)}")
            continue
        for case in read["cases"]:
            sent = {"do": f"vectors.{path.stem}", "with": case["with"], "client": {}}
            yield f"vectors {path.stem}: {case['name']}", case["expect"], sent


def _count(name: str, failure: str, results: Results) -> None:
    if failure:
        results.failures.append(f"{results.of}: {name}: {failure}")
    else:
        results.passed += 1

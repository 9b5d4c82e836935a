"""Kills a server while the drivers of all SDKs create timers, 32 at a time each, and starts it again five seconds later.

    python -m sdks.restart [LANGUAGE …] [--tocsin COMMAND]

No create may fail, and what the server has stored must be exactly what the drivers created.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from itertools import count
from pathlib import Path
from typing import Any

import httpx
from tests.support.ports import free_port

from sdks.harness import Driver, Server, chosen, drive
from sdks.scenario_runner.control import Control, DriverGone
from sdks.scenario_runner.scenarios import Results

_OUTAGE_S = 5.0
#: A step has more than are under way at a time, so that a kill meets some that wait for their answers.
_TIMERS_OF_STEP = 200
_CONCURRENCY = 32
_PAGE = 1_000


class Creating:
    """A driver that creates timers in a namespace of its own, step by step."""

    def __init__(self, driver: Driver, url: str, outage: Outage) -> None:
        self.namespace = f"restart-{driver.name}"
        self.steps = 0
        self.is_in_step = False
        self.results = Results(self.namespace)
        self.created: list[str] = []
        self._url = url
        self._outage = outage
        self._ids = (f"t-{number}" for number in count())

    async def run(self, control: Control) -> None:
        """Creates until one step after the outage."""
        await control.hello()
        await self._outage.started()
        try:
            while not self._outage.is_over:
                await self._step(control)
            await self._step(control)
            self._check_tries(await self._perform(control, "tries", {}))
        except ValueError as failed:
            self.results.failures.append(f"{self.namespace}: {failed}")
            self._outage.go_on_without(self)
        else:
            self.results.passed += 1
        control.end(self.results)

    async def _step(self, control: Control) -> None:
        timers = [
            {"namespace": self.namespace, "id": next(self._ids), "delay": "1h", "callbackUrl": "http://127.0.0.1:9/"}
            for _ in range(_TIMERS_OF_STEP)
        ]
        self.is_in_step = True
        self._outage.consider()
        results = await self._perform(control, "timers.createEach", {"timers": timers, "concurrency": _CONCURRENCY})
        self.is_in_step = False
        self.steps += 1
        if failed := [result["error"] for result in results if "error" in result]:
            raise ValueError(f"{len(failed)} creates failed, one of them with {failed[0]}")
        self.created += [result["timer"]["id"] for result in results]

    async def _perform(self, control: Control, do: str, given: dict[str, Any]) -> Any:
        step = {"do": do, "with": given, "client": {"url": self._url}, "scenario": "restart"}
        outcome = await control.perform(step)
        if "error" in outcome:
            raise ValueError(f"{do}: {outcome['error']}")
        return outcome["value"]

    @staticmethod
    def _check_tries(seen: dict[str, Any]) -> None:
        # Else nothing was proven: the server was killed when this driver had no call under way.
        if not any("error" in each for each in seen["tries"]):
            raise ValueError("no try has failed")


class Outage:
    """Kills the server once every driver is in the middle of a step that is not its first."""

    def __init__(self, server: Server, drivers: int) -> None:
        self.creating: list[Creating] = []
        self.is_over = False
        self._server = server
        self._start = asyncio.Barrier(drivers)
        self._due = asyncio.Event()

    async def started(self) -> None:
        """Returns when all drivers have started."""
        await self._start.wait()

    def consider(self) -> None:
        """Whether it is time."""
        if all(each.steps and each.is_in_step for each in self.creating):
            self._due.set()

    def go_on_without(self, failed: Creating) -> None:
        """One driver has failed: the outage does not wait for it."""
        self.creating.remove(failed)
        self.consider()

    async def happen(self, port: int) -> None:
        """Waits until it is time; returns when the server serves again."""
        await self._due.wait()
        await self._server.kill()
        await asyncio.sleep(_OUTAGE_S)
        await self._server.start(port)
        self.is_over = True


async def _stored(url: str, namespace: str) -> list[str]:
    """The ids of all timers of the namespace."""
    ids: list[str] = []
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        cursor: dict[str, str] = {}
        while True:
            body = {"namespace": namespace, "limit": _PAGE, **cursor}
            page = (await client.post("/api/v1/timers/list", json=body)).raise_for_status().json()
            ids += [timer["id"] for timer in page["timers"]]
            if "nextCursor" not in page:
                return ids
            cursor = {"cursor": page["nextCursor"]}


async def run(drivers: list[Driver], command: list[str]) -> list[str]:
    """What went wrong."""
    with tempfile.TemporaryDirectory(prefix="tocsin-sdks-") as folder:
        server = Server([*command, "serve"], Path(folder))
        try:
            # While the server is away, the system must not give its port to a connection.
            port = free_port()
            url = await server.start(port)
            outage = Outage(server, len(drivers))
            creating = [Creating(driver, url, outage) for driver in drivers]
            outage.creating = list(creating)
            async with httpx.AsyncClient(base_url=url, timeout=60) as client:
                for each in creating:
                    (await client.post("/api/v1/namespaces/create", json={"name": each.namespace})).raise_for_status()
            async with asyncio.TaskGroup() as tasks:
                happening = tasks.create_task(outage.happen(port))
                for driver, each in zip(drivers, creating, strict=True):
                    tasks.create_task(drive(driver, each.run))
            await happening
            return [failure for each in creating for failure in await _failures(url, each)]
        finally:
            await server.stop()


async def _failures(url: str, each: Creating) -> list[str]:
    if each.results.failures:
        return each.results.failures
    stored = await _stored(url, each.namespace)
    print(f"{each.namespace}: {len(each.created)} created, {len(stored)} stored", flush=True)
    return [] if sorted(stored) == sorted(each.created) else [f"{each.namespace}: the ledger does not balance"]


def main() -> int:
    """Returns the exit code."""
    drivers, command = chosen("Kill and restart the server while the SDKs' drivers create timers.")
    try:
        failures = asyncio.run(run(drivers, command))
    except* (DriverGone, TimeoutError) as gone:
        failures = [str(error) for error in gone.exceptions]
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs the scenarios and vectors with the driver of each SDK, on a real server: `make test-sdks`.

    python -m sdks.harness [LANGUAGE …] [--tocsin COMMAND]

`sdks/README.md` describes the format of scenarios and what a driver does.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sdks.scenario_runner.control import Control, DriverGone
from sdks.scenario_runner.http import serving
from sdks.scenario_runner.scenarios import Results, World, run_all

SDKS = Path(__file__).resolve().parent
_READY = re.compile(rb"serves on (http://\S+?:\d+) ")
_START_TIMEOUT_S = 90.0
_END_TIMEOUT_S = 30.0
#: How many drivers run at a time, each with its own server. They wait more than they compute.
_AT_A_TIME = 3


@dataclass(frozen=True)
class Driver:
    """How the driver of a language is started, in `folder` below `sdks/`. `requires` are programs that it needs, `target` is
    what `make` builds before."""

    name: str
    folder: str
    command: tuple[str, ...]
    requires: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    target: str = ""


_PYTHON = (sys.executable, "driver.py")
#: Also `bun`, or `deno run -A`.
_JAVASCRIPT = tuple(shlex.split(os.environ.get("TOCSIN_TEST_JAVASCRIPT", "node")))
_TYPESCRIPT = Driver(
    "typescript",
    "typescript",
    (*_JAVASCRIPT, "run-driver.mjs"),
    requires=("npm", "node", _JAVASCRIPT[0]),
    target="sdk-typescript",
)
_JAVA = Driver(
    "java",
    "java",
    (
        "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "-cp", "tocsin-client/target/classes:driver/target/classes:driver/target/lib/*", "dev.tocsin.client.Driver",
    ),
    requires=("java", "javac", "mvn"),
    target="sdk-java",
)  # fmt: skip
DRIVERS = (
    Driver("python", "python", _PYTHON, env={"PYTHONPATH": "src"}),
    Driver("python-async", "python", _PYTHON, env={"PYTHONPATH": "src", "TOCSIN_SDK_MODE": "async"}),
    _TYPESCRIPT,
    replace(_TYPESCRIPT, name="typescript-edge", env={"TOCSIN_SDK_MODE": "edge"}),
    Driver("go", "go/tests", ("go", "run", "./driver"), requires=("go",)),
    _JAVA,
    replace(_JAVA, name="java-async", env={"TOCSIN_SDK_MODE": "async"}),
)


def _has(program: str) -> bool:
    """Whether the machine has the program. A Go that is too old for the driver's module counts as none."""
    if shutil.which(program) is None:
        return False
    in_module = ("go", "list", "-m")
    return program != "go" or not subprocess.run(in_module, cwd=SDKS / "go/tests", capture_output=True).returncode


class Server:
    """A server of its own process, with its data and log in a folder. `command` begins `tocsin`'s."""

    def __init__(self, command: list[str], folder: Path, env: dict[str, str] | None = None) -> None:
        self._command = [*command, "--data-dir", str(folder / "data")]
        self._log = folder / "server.log"
        self._env = {**os.environ, **(env or {})}
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, port: int = 0) -> str:
        """Starts it on the port, by default on a free one. Returns its URL when it serves."""
        with self._log.open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, "--port", str(port), stdout=asyncio.subprocess.PIPE, stderr=output, env=self._env
            )
        assert self._process.stdout is not None
        async with asyncio.timeout(_START_TIMEOUT_S):
            while not (found := _READY.search(line := await self._process.stdout.readline())):
                if not line:
                    raise SystemExit(f"the server ended: {self._log.read_text()[-4000:]}")
        return found[1].decode()

    async def kill(self) -> None:
        """As `kill -9` does."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """Ends it if it runs."""
        if self._process is not None and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()


@asynccontextmanager
async def _dev_server(command: list[str], admin_key: str) -> AsyncIterator[str]:
    """A server whose clock can be moved; yields its URL. It requires no key, but the operations that always require one
    accept this one."""
    with tempfile.TemporaryDirectory(prefix="tocsin-sdks-") as folder:
        key_file = Path(folder) / "admin-key"
        key_file.touch(mode=0o600)
        key_file.write_text(admin_key)
        env = {"TOCSIN_ADMIN_KEY_FILE": str(key_file), "TOCSIN_INSECURE": "true"}
        server = Server([*command, "dev"], Path(folder), env)
        try:
            yield await server.start()
        finally:
            await server.stop()


async def drive(driver: Driver, work: Callable[[Control], Coroutine[Any, Any, None]]) -> None:
    """Starts the driver, has it do the work, and waits for its end. Raises DriverGone."""
    control = Control()
    async with serving(control) as port:
        process = await asyncio.create_subprocess_exec(
            *driver.command,
            cwd=SDKS / driver.folder,
            env={**os.environ, **driver.env, "TOCSIN_SDK_CONTROL": f"http://127.0.0.1:{port}"},
        )
        ended = asyncio.create_task(process.wait())
        working = asyncio.create_task(work(control))
        try:
            await asyncio.wait((ended, working), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise DriverGone(f"the driver ended early, with exit code {process.returncode}")
            await working
            async with asyncio.timeout(_END_TIMEOUT_S):
                await ended
        finally:
            working.cancel()
            if process.returncode is None:
                process.kill()
            await ended


async def run(driver: Driver, command: list[str]) -> Results:
    """Runs everything with one driver, which prints the results. Raises DriverGone."""
    results = Results(driver.name)
    async with AsyncExitStack() as stack:
        admin_key = secrets.token_hex(32)
        world = World(await stack.enter_async_context(_dev_server(command, admin_key)), admin_key)
        stack.push_async_callback(world.close)
        await stack.enter_async_context(world.proxy.running())
        world.hook = f"http://127.0.0.1:{await stack.enter_async_context(serving(world.receiver))}"
        await drive(driver, lambda control: _run(world, control, results))
    return results


async def _run(world: World, control: Control, results: Results) -> None:
    can = await control.hello()
    await run_all(SDKS, world, can, control.perform, results)
    for skipped in results.skipped:
        print(f"{results.of}: SKIPPED {skipped}", flush=True)
    control.end(results)


def _missing(driver: Driver) -> list[str]:
    """Programs that the driver requires and the machine lacks. They are printed; with TOCSIN_TEST_REQUIRE, a list of
    programs, the lack of one of those is the end."""
    lacking = [program for program in driver.requires if not _has(program)]
    if lacking:
        print(f"{driver.name}: NOT RUN: {', '.join(lacking)} not found", file=sys.stderr, flush=True)
        if set(lacking).intersection(os.environ.get("TOCSIN_TEST_REQUIRE", "").split(",")):
            raise SystemExit(1)
    return lacking


def _build(driver: Driver) -> bool:
    """Builds the driver; whether that succeeded."""
    if driver.target and subprocess.run(["make", "--silent", driver.target], cwd=SDKS.parent, check=False).returncode:
        print(f"{driver.name}: FAILED: make {driver.target}", file=sys.stderr, flush=True)
        return False
    return True


async def _run_reported(driver: Driver, command: list[str], free: asyncio.Semaphore) -> bool:
    """Runs one driver; whether all went well."""
    async with free:
        try:
            return not (await run(driver, command)).failures
        except (DriverGone, TimeoutError) as error:
            print(f"{driver.name}: FAILED: {error}", file=sys.stderr, flush=True)
            return False


async def _run_each(drivers: list[Driver], command: list[str]) -> bool:
    free = asyncio.Semaphore(_AT_A_TIME)
    return all(await asyncio.gather(*(_run_reported(driver, command, free) for driver in drivers)))


def chosen(description: str) -> tuple[list[Driver], list[str]]:
    """The drivers and the server's command that the command line names. The drivers are built; those that the machine can't
    run are named and left out."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("language", nargs="*", help="which of them; by default all")
    parser.add_argument("--tocsin", default=f"{shlex.quote(sys.executable)} -m tocsin", help="the server's command")
    arguments = parser.parse_args()
    known = {driver.name for driver in DRIVERS}
    if unknown := set(arguments.language) - known:
        parser.error(f"there is no driver {', '.join(sorted(unknown))}; drivers are: {', '.join(sorted(known))}")
    drivers = [driver for driver in DRIVERS if not arguments.language or driver.name in arguments.language]
    drivers = [driver for driver in drivers if not _missing(driver)]
    if not all(map(_build, drivers)):
        raise SystemExit(1)
    return drivers, shlex.split(arguments.tocsin)


def main() -> int:
    """Returns the exit code."""
    drivers, command = chosen("Run the scenarios and vectors with the drivers of the SDKs.")
    return 0 if asyncio.run(_run_each(drivers, command)) else 1


if __name__ == "__main__":
    sys.exit(main())

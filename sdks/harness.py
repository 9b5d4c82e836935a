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
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from sdks.scenario_runner.control import Control, DriverGone
from sdks.scenario_runner.http import serving
from sdks.scenario_runner.scenarios import Results, World, run_all

SDKS = Path(__file__).resolve().parent
_READY = re.compile(rb"serves on (http://\S+?:\d+) ")
_START_TIMEOUT_S = 90.0
_END_TIMEOUT_S = 30.0


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


@asynccontextmanager
async def _server(command: list[str], admin_key: str) -> AsyncIterator[str]:
    """A server whose clock can be moved, on a free port in a temporary folder; yields its URL. It requires no key, but the
    operations that always require one accept this one."""
    with tempfile.TemporaryDirectory(prefix="tocsin-sdks-") as folder:
        log, key_file = Path(folder) / "server.log", Path(folder) / "admin-key"
        key_file.touch(mode=0o600)
        key_file.write_text(admin_key)
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *command, "dev", "--port", "0", "--data-dir", f"{folder}/data",
                stdout=asyncio.subprocess.PIPE, stderr=output,
                env={**os.environ, "TOCSIN_ADMIN_KEY_FILE": str(key_file), "TOCSIN_INSECURE": "true"},
            )  # fmt: skip
        assert process.stdout is not None
        try:
            async with asyncio.timeout(_START_TIMEOUT_S):
                while not (found := _READY.search(line := await process.stdout.readline())):
                    if not line:
                        raise SystemExit(f"the server ended: {log.read_text()[-4000:]}")
            yield found[1].decode()
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def run(driver: Driver, command: list[str]) -> Results:
    """Runs everything with one driver, which prints the results. Raises DriverGone."""
    results = Results()
    async with AsyncExitStack() as stack:
        admin_key = secrets.token_hex(32)
        world = World(await stack.enter_async_context(_server(command, admin_key)), admin_key)
        stack.push_async_callback(world.close)
        await stack.enter_async_context(world.proxy.running())
        world.hook = f"http://127.0.0.1:{await stack.enter_async_context(serving(world.receiver))}"
        control = Control()
        port = await stack.enter_async_context(serving(control))
        process = await asyncio.create_subprocess_exec(
            *driver.command,
            cwd=SDKS / driver.folder,
            env={**os.environ, **driver.env, "TOCSIN_SDK_CONTROL": f"http://127.0.0.1:{port}"},
        )
        ended = asyncio.create_task(process.wait())
        running = asyncio.create_task(_run(world, control, results))
        try:
            await asyncio.wait((ended, running), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                raise DriverGone(f"the driver ended early, with exit code {process.returncode}")
            await running
            async with asyncio.timeout(_END_TIMEOUT_S):
                await ended
        finally:
            running.cancel()
            if process.returncode is None:
                process.kill()
            await ended
    return results


async def _run(world: World, control: Control, results: Results) -> None:
    can = await control.hello()
    await run_all(SDKS, world, can, control.perform, results)
    for skipped in results.skipped:
        print(f"SKIPPED {skipped}", flush=True)
    control.end(results)


def _run_reported(driver: Driver, command: list[str]) -> bool:
    """Runs one driver; whether all went well. Names what it can't run."""
    missing = [program for program in driver.requires if not _has(program)]
    if missing:
        print(f"{driver.name}: NOT RUN: {', '.join(missing)} not found", file=sys.stderr, flush=True)
        return not set(missing).intersection(os.environ.get("TOCSIN_TEST_REQUIRE", "").split(","))
    print(f"{driver.name}:", flush=True)
    if driver.target and subprocess.run(["make", "--silent", driver.target], cwd=SDKS.parent, check=False).returncode:
        print(f"{driver.name}: FAILED: make {driver.target}", file=sys.stderr, flush=True)
        return False
    try:
        return not asyncio.run(run(driver, command)).failures
    except (DriverGone, TimeoutError) as error:
        print(f"{driver.name}: FAILED: {error}", file=sys.stderr, flush=True)
        return False


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description="Run the scenarios and vectors with the drivers of the SDKs.")
    parser.add_argument("language", nargs="*", help="which of them; by default all")
    parser.add_argument("--tocsin", default=f"{shlex.quote(sys.executable)} -m tocsin", help="the server's command")
    arguments = parser.parse_args()
    known = {driver.name for driver in DRIVERS}
    if unknown := set(arguments.language) - known:
        parser.error(f"there is no driver {', '.join(sorted(unknown))}; drivers are: {', '.join(sorted(known))}")
    chosen = [driver for driver in DRIVERS if not arguments.language or driver.name in arguments.language]
    command = shlex.split(arguments.tocsin)
    succeeded = [_run_reported(driver, command) for driver in chosen]
    return 0 if all(succeeded) else 1


if __name__ == "__main__":
    sys.exit(main())

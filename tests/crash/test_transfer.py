"""`tocsin transfer` between real servers, killed twice on the way: nothing is lost, nothing fires twice or early, and a
firing goes on under its `webhook-id`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import pytest

from tests.integration.server.test_agent_flow import finished, new_id, submit
from tests.support import preloaded
from tests.support.calls import Api, Call, Inbox
from tests.support.command import command
from tests.support.http import Client, Receiver
from tests.support.patience import PATIENCE_S
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess
from tocsin.model.instants import US_PER_DAY, US_PER_SECOND, format_instant

FAR, SOON, AGAIN = 20_000, 200, 20
#: Timers are due so long after they were created that the target serves by then, unless the machine is slow: then they are
#: late, which is not measured.
AHEAD_US = 30 * US_PER_SECOND


def now_us() -> int:
    return time.time_ns() // 1_000


def mark_in_file(path: Path) -> str:
    """The mark of a transfer in a SQLite file; empty if there is none."""
    if not path.exists():
        return ""
    connection = sqlite3.connect(f"file:{path}?mode=rw", uri=True)
    try:
        found = connection.execute(
            "SELECT record_value FROM records WHERE record_kind = 'transfer' AND record_key = 'state'"
        ).fetchone()
    except sqlite3.OperationalError:
        # It is being created.
        return ""
    finally:
        connection.close()
    return str(found[0]) if found else ""


async def mark_in_schema(connection: asyncpg.Connection) -> str:
    """The same in PostgreSQL."""
    with contextlib.suppress(asyncpg.UndefinedTableError):
        return str(
            await connection.fetchval(
                "SELECT record_value FROM tocsin.records WHERE record_kind = 'transfer' AND record_key = 'state'"
            )
            or ""
        )
    return ""


#: Under which secrets are encrypted, on both sides.
KEY = {"TOCSIN_SECRETS_KEY": "55" * 32}


@pytest.fixture(params=["sqlite", "postgresql"])
async def target(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[str, ServerProcess]]:
    """The URL of an empty store, and a server that uses it once it is started."""
    folder = tmp_path / "target"
    url = f"sqlite:///{folder / 'tocsin.db'}"
    flags: tuple[str, ...] = ()
    if request.param == "postgresql":
        postgresql: PostgresServer = request.getfixturevalue("shared_postgresql")
        url = await postgresql.create_database()
        flags = ("--store", url)
    server = ServerProcess(folder, *flags, env=KEY)
    yield url, server
    if server.process is not None:
        await server.kill()


async def transferred(source: Path, url: str, kill_at: Callable[[str], bool] | None) -> tuple[int, str]:
    """Runs the command; kills it as soon as the target's mark is like this. Exit code and output: 0 also if it was complete
    before that was seen."""
    arguments = ["transfer", "--from", f"sqlite:///{source}", "--to", url, "--shards", "7"]
    async with AsyncExitStack() as ends:
        if url.startswith("postgresql"):
            # Opened before it begins: on a busy machine, opening one takes as long as many a shard.
            connection = await asyncpg.connect(url)
            ends.push_async_callback(connection.close)
        process = await preloaded.start(arguments, {**os.environ, "TOCSIN_URL": "", **KEY})
        output = asyncio.ensure_future(process.communicate())
        async with asyncio.timeout(PATIENCE_S):
            while kill_at is not None and not output.done():
                mark = (
                    await mark_in_schema(connection)
                    if url.startswith("postgresql")
                    else mark_in_file(Path(url.removeprefix("sqlite:///")))
                )
                if kill_at(mark):
                    process.kill()
                    break
                await asyncio.sleep(0.005)
            out, err = await output
    assert process.returncode is not None
    return process.returncode, out.decode() + err.decode()


@pytest.mark.timeout(300)
async def test_a_transfer_that_is_killed_loses_nothing(target: tuple[str, ServerProcess], tmp_path: Path) -> None:
    url, after = target
    before, inbox, tenant = ServerProcess(tmp_path / "source", env=KEY), Inbox(answers=[(500, b"")] * AGAIN), new_id()
    file = before.data_dir / "tocsin.db"
    async with Receiver(inbox) as receiver, Receiver(Inbox()) as calls:
        await before.start()
        api, client = Api(before), Client(before.address)
        assert (await api("namespaces/create", name="narrow", numShards=2))[0] == 200
        schedule = {"namespace": "default", "id": "daily", "callbackUrl": receiver.url, "cron": "0 3 * * *"}
        assert (await api("schedules/create", **schedule))[0] == 200
        call_done = await submit(client, tenant, calls.url)
        assert (await finished(client, tenant, call_done))["status"] == "Succeeded"

        async def create(kind: str, count: int, at_us: int) -> None:
            for begin in range(0, count, 1_000):
                timers = [
                    {
                        "namespace": ("default", "narrow")[number % 2],
                        "id": f"{kind}-{number}",
                        "callbackUrl": receiver.url,
                        "executeAt": format_instant(at_us),
                        "payload": {"number": number},
                    }
                    for number in range(begin, min(begin + 1_000, count))
                ]
                status, answer = await api("timers/batch/create", timers=timers)
                assert status == 200, answer

        await create("far", FAR, now_us() + US_PER_DAY)
        # From here on the time runs in which the source must have stopped.
        policy = {"maxAttempts": 5, "initialInterval": "30s", "maxInterval": "30s"}
        for number in range(AGAIN):
            await api.create(f"again-{number}", receiver.url, namespace="narrow", retryPolicy=policy)
        await inbox.count(AGAIN)
        due_at = now_us() + AHEAD_US
        call_due = await submit(client, tenant, calls.url, dueAt=format_instant(due_at))
        await create("soon", SOON, due_at)
        for number in range(AGAIN):
            await api.attempted(f"again-{number}", 1, namespace="narrow")
        code, _, refusal = await command("transfer", "--from", f"sqlite:///{file}", "--to", url, env=KEY)
        assert (code, "in use by another Tocsin" in refusal) == (1, True), refusal
        assert await before.stop() == 0
        code, out, _ = await command(
            "transfer", "--from", f"sqlite:///{file}", "--to", url, "--dry-run", "--json", env=KEY
        )
        assert (code, f'"timers":{FAR + SOON + AGAIN},"schedules":1' in out.replace(" ", "").replace("\n", "")) == (
            0,
            True,
        ), out
        killed = 0
        for copied in ("[0", "[0,1"):
            code, output = await transferred(file, url, lambda mark, copied=copied: f'"copied":{copied}' in mark)
            if code == 0:
                # The machine has halted this process, and not the other one.
                break
            assert code == -signal.SIGKILL, output
            killed += 1
            code, _, refusal = await command(
                "serve", "--port", "0", "--data-dir", str(after.data_dir), *after.flags, env=KEY
            )
            assert (code, "is not complete" in refusal) == (1, True), refusal
        assert killed
        code, output = await transferred(file, url, None)
        assert code == 0, output
        code, _, refusal = await command("serve", "--port", "0", "--data-dir", str(before.data_dir), env=KEY)
        assert (code, "were transferred to" in refusal) == (1, True), refusal
        # As after a kill when only the report was missing.
        assert (await transferred(file, url, None)) == (0, output)
        elsewhere = f"sqlite:///{tmp_path / 'elsewhere' / 'tocsin.db'}"
        code, _, refusal = await command("transfer", "--from", f"sqlite:///{file}", "--to", elsewhere, env=KEY)
        assert (code, "nothing is left to move" in refusal) == (1, True), refusal

        await after.start()
        started_us, api, client = now_us(), Api(after), Client(after.address)
        listed = (await api("namespaces/list"))[1]["namespaces"]
        assert {each["name"]: each["numShards"] for each in listed if "." not in each["name"]} == {
            "default": 7,
            "narrow": 2,
        }
        for number in range(0, FAR, 997):
            far = await api.get(f"far-{number}", namespace=("default", "narrow")[number % 2])
            assert (far["status"], far["payload"]) == ("pending", {"number": number})
        assert (await api("schedules/get", namespace="default", scheduleId="daily"))[0] == 200
        assert (await finished(client, tenant, call_done))["status"] == "Succeeded"
        expected = SOON + 2 * AGAIN
        await inbox.count(expected)
        assert (await finished(client, tenant, call_due))["status"] == "Succeeded"
        by_id: dict[str, list[Call]] = defaultdict(list)
        for each in inbox.calls:
            by_id[each.body["timerId"]].append(each)
        assert {name: len(found) for name, found in by_id.items() if name.startswith("soon")} == {
            f"soon-{number}": 1 for number in range(SOON)
        }
        for number in range(AGAIN):
            first, second = by_id[f"again-{number}"]
            assert first.headers["webhook-id"] == second.headers["webhook-id"]
        assert len(inbox.calls) == expected
        lags = [each.lag_us for name, (each, *_) in by_id.items() if name.startswith("soon")]
        assert min(lags) >= 0
        print(f"target served {(due_at - started_us) / 1e6:.1f} s before; lag at most {max(lags) / 1e3:.0f} ms")
        assert await after.stop() == 0

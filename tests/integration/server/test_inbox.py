"""The inbox: rows that programs commit in their own database become timers, by `tocsin serve` alone."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tocsin_client import Client as LibraryClient
from tocsin_client.outbox import DbApi, Drain
from tocsin_client.outbox.__main__ import connector

from tests.integration.server.conftest import serving
from tests.support.calls import Api
from tests.support.calls import Inbox as Calls
from tests.support.command import command
from tests.support.http import Client, Receiver
from tests.support.inbox import KINDS, Program, new_program
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.inbox.reading import RowReader
from tocsin.model.instants import parse_instant
from tocsin.ports.inbox import DueRow
from tocsin.server.node import Server
from tocsin.settings import load_settings

#: A namespace that every server has.
SHOP = "default"
NOWHERE = "http://127.0.0.1:9/"


@pytest.fixture(params=KINDS)
async def program(request: pytest.FixtureRequest) -> Program:
    made, _ = await new_program(request, request.param)
    await made.cli("migrate")
    return made


@asynccontextmanager
async def draining(
    folder: Path, program: Program, *flags: str, poll: str = "100ms", **env: str
) -> AsyncIterator[tuple[ServerProcess, Api]]:
    """A server that drains rows of two namespaces, of which one is missing."""
    env |= program.settings(SHOP, "missing", poll=poll)
    async with serving(folder, "--no-agent", *flags, env=env) as server:
        yield server, Api(server)


async def until(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    """Polls until the condition holds: neither a table nor a metric notifies."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            holds = condition()
            if holds if isinstance(holds, bool) else await holds:
                return
            await asyncio.sleep(0.05)


async def emptied(program: Program) -> None:
    await until(lambda: not program.left())


async def counted(server: ServerProcess, **outcomes: int) -> dict[str, float]:
    """The metrics, once so many rows have had these outcomes: what a row shows is counted a moment later."""
    found: dict[str, float] = {}

    async def are_counted() -> bool:
        found.update(await metrics(server))
        return all(found[f'tocsin_inbox_rows_total{{outcome="{name}"}}'] == number for name, number in outcomes.items())

    await until(are_counted)
    return found


async def metrics(server: ServerProcess) -> dict[str, float]:
    async with httpx.AsyncClient() as client:
        text = (await client.get(f"{server.url}/metrics")).text
    found = re.findall(r"^(tocsin_inbox_[^ ]+) (\S+)$", text, re.MULTILINE)
    return {name: float(value) for name, value in found}


async def ready(server: ServerProcess) -> tuple[int, Any]:
    client = Client(server.address)
    try:
        return await client.get("/readyz")
    finally:
        client.close()


async def test_committed_rows_fire_and_those_rolled_back_do_not(tmp_path: Path, program: Program) -> None:
    calls = Calls()
    async with Receiver(calls) as receiver, draining(tmp_path, program) as (server, _):
        program.write(SHOP, receiver.url, "never", commit=False)
        program.write(SHOP, receiver.url, "a", "größe/17 ☂", payload={"größe": 1})
        await calls.count(2)
        await emptied(program)
        program.write(SHOP, receiver.url, "b")
        await calls.count(3)
        await emptied(program)
        assert sorted(call.body["timerId"] for call in calls.calls) == ["a", "b", "größe/17 ☂"]
        assert [call.body["payload"] for call in calls.calls[:2]] == [{"größe": 1}] * 2
        shown = await counted(server, created=3)
        assert (shown["tocsin_inbox_draining"], shown["tocsin_inbox_away_seconds"]) == (1, 0)
        assert shown["tocsin_inbox_lag_seconds_count"] >= 2
        assert await ready(server) == (200, {"status": "ready"})


async def test_a_delay_counts_from_the_transaction_and_an_instant_stays(tmp_path: Path, program: Program) -> None:
    program.write(SHOP, NOWHERE, "instant", execute_at="2040-01-01T00:00:00Z")
    program.write(SHOP, NOWHERE, "delay", delay="1h")
    program.execute("UPDATE tocsin_outbox SET created_at = created_at - 600000000 WHERE timer_id = 'delay'")
    ((written_at,),) = program.execute("SELECT created_at FROM tocsin_outbox WHERE timer_id = 'delay'")
    async with draining(tmp_path, program) as (_, api):
        await emptied(program)
        assert (await api.get("instant", namespace=SHOP))["executeAt"].startswith("2040-01-01T00:00:00")
        at = parse_instant((await api.get("delay", namespace=SHOP))["executeAt"])
        assert abs(at - written_at - 3_600_000_000) < 1_000_000


async def test_rows_of_a_timer_are_created_in_order(tmp_path: Path, program: Program) -> None:
    def work(rows: Any, _: Any) -> None:
        for n in range(300):
            rows.create(SHOP, f"t{n % 100}", NOWHERE, delay="1h", payload=n)

    program.transaction(work)
    async with draining(tmp_path, program) as (_, api):
        await emptied(program)
        _, page = await api("timers/list", namespace=SHOP, limit=1_000)
    assert {timer["id"]: timer["payload"] for timer in page["timers"]} == {f"t{n}": 200 + n for n in range(100)}


async def test_a_row_is_not_held_up_by_one_whose_id_differs_in_case(tmp_path: Path, program: Program) -> None:
    """Rows of one timer are created in order, and these are of two."""
    program.write(SHOP, NOWHERE, "a", "A", delay="1h")
    program.execute("UPDATE tocsin_outbox SET due_at = 9000000000000000 WHERE timer_id = 'a'")
    async with draining(tmp_path, program) as (_, api):
        await until(lambda: len(program.left()) == 1)
        assert (await api.get("A", namespace=SHOP))["id"] == "A"


async def test_large_rows_are_read_in_parts(tmp_path: Path, program: Program) -> None:
    """Together they have more bytes than are read at once."""
    program.write(SHOP, NOWHERE, *(f"t{n}" for n in range(100)), delay="1h", payload="x" * 100_000)
    async with draining(tmp_path, program) as (_, api):
        await emptied(program)
        _, page = await api("timers/list", namespace=SHOP, limit=1_000)
        found = {timer["id"] for timer in page["timers"]}
        while cursor := page.get("nextCursor"):
            _, page = await api("timers/list", namespace=SHOP, limit=1_000, cursor=cursor)
            found |= {timer["id"] for timer in page["timers"]}
    assert len(found) == 100


async def test_a_drain_of_a_library_may_run_beside_it(tmp_path: Path, program: Program) -> None:
    calls = Calls()
    async with Receiver(calls) as receiver, draining(tmp_path, program) as (server, _):
        with LibraryClient(server.url) as client:
            drain = Drain(client, DbApi(connector(program.url)), rows_max=20)
            for n in range(0, 300, 30):
                program.write(SHOP, receiver.url, *(f"t{each}" for each in range(n, n + 30)))
                await asyncio.to_thread(drain.once)
        await calls.count(300)
        await emptied(program)
    assert {call.body["timerId"] for call in calls.calls} == {f"t{n}" for n in range(300)}
    assert len(calls.calls) == 300


async def test_what_is_refused_for_good_stays_with_its_reason_until_it_is_replayed(
    tmp_path: Path, program: Program
) -> None:
    async with draining(tmp_path, program) as (server, api):

        def work(rows: Any, cursor: Any) -> None:
            rows.create("foreign", "of-another", NOWHERE, delay="1h")
            rows.create("missing", "mended", NOWHERE, delay="1h")
            rows.create(SHOP, "large", NOWHERE, delay="1h", payload="x" * 300_000)
            rows.create(SHOP, "broken", NOWHERE, delay="1h")
            rows.create(SHOP, "address", "ftp://shop.example", delay="1h")
            cursor.execute("UPDATE tocsin_outbox SET request = '{' WHERE timer_id = 'broken'")

        program.transaction(work)
        program.write(SHOP, NOWHERE, "fine", delay="1h")
        await until(lambda: len(program.left()) == 5 and not undecided(program))
        assert (await api.get("fine", namespace=SHOP))["status"] == "pending"
        listed = json.loads(await program.cli("list", "--dead", "--json"))
        reasons = {row["timerId"]: row["deadReason"] for row in listed}
        assert {timer_id: reason.partition(":")[0] for timer_id, reason in reasons.items()} == {
            "of-another": "INVALID_INPUT",
            "mended": "NAMESPACE_NOT_FOUND",
            "large": "BODY_TOO_LARGE",
            "broken": "MALFORMED_BODY",
            "address": "INVALID_INPUT",
        }
        assert "not among inbox.namespaces" in reasons["of-another"]
        assert "callbackUrl" in reasons["address"]
        assert "mended" in await program.cli("list", "--dead", "--namespace", "missing")
        assert json.loads(await program.cli("status", "--json")) == {"waiting": 0, "dead": 5}
        assert (await counted(server, dead=5))["tocsin_inbox_rows_dead"] == 5

        env = program.settings(SHOP) | {"TOCSIN_PORT": str(server.port), "TOCSIN_DATA_DIR": str(server.data_dir)}
        code, found, _ = await command("doctor", env=env)
        assert (code, "0 rows wait, 5 are dead" in found) == (0, True), found

        assert (await api("namespaces/create", name="missing"))[0] in (200, 201)
        assert json.loads(await program.cli("replay", "--namespace", "missing", "--json")) == {"replayed": 1}
        await until(lambda: "mended" not in program.left())
        assert (await api.get("mended", namespace="missing"))["status"] == "pending"
        broken = next(row["id"] for row in listed if row["timerId"] == "broken")
        assert json.loads(await program.cli("replay", broken, "--json")) == {"replayed": 1}
        await until(lambda: len(program.left()) == 4 and not undecided(program))
        code, _, err = await command("inbox", "replay", "--inbox-url", program.url)
        assert (code, "--all" in err) == (2, True)


def undecided(program: Program) -> list[Any]:
    return program.execute("SELECT id FROM tocsin_outbox WHERE dead_reason IS NULL")


async def test_a_quota_delays_rows_and_loses_none(tmp_path: Path, program: Program) -> None:
    async with draining(tmp_path, program) as (server, api):
        status, _ = await api("namespaces/update", name=SHOP, quotas={"createsPerSecond": 5})
        assert status == 200
        program.write(SHOP, NOWHERE, *(f"t{n}" for n in range(12)), delay="1h")
        await emptied(program)
        _, page = await api("timers/list", namespace=SHOP)
        assert len(page["timers"]) == 12
        shown = await counted(server, created=12)
        assert shown['tocsin_inbox_rows_total{outcome="waiting"}'] >= 1
        assert shown['tocsin_inbox_rows_total{outcome="dead"}'] == 0


async def test_a_row_that_was_created_before_fires_once(tmp_path: Path, program: Program) -> None:
    """As after a crash between the creation of a timer and the deletion of its row."""
    calls = Calls()
    async with Receiver(calls) as receiver:
        program.write(SHOP, receiver.url, "again")
        kept = program.execute("SELECT id, namespace, timer_id, request, created_at, due_at FROM tocsin_outbox")
        async with draining(tmp_path, program) as (_, api):
            await calls.count(1)
            await emptied(program)
            marks = ", ".join(["%s"] * 6)
            columns = "id, namespace, timer_id, request, created_at, due_at"
            program.execute(f"INSERT INTO tocsin_outbox ({columns}) VALUES ({marks})", *kept[0])
            program.write(SHOP, receiver.url, "next")
            await calls.count(2)
            await emptied(program)
            assert [call.body["timerId"] for call in calls.calls] == ["again", "next"]
            assert (await api.settled("again", "completed", namespace=SHOP))["attempts"] == 1


async def test_a_defect_that_one_row_meets_holds_up_no_other(
    tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    timer, fails = RowReader.timer, True

    def read(self: RowReader, row: DueRow, request: str, **times: int) -> Any:
        if fails and "odd" in request:
            raise ZeroDivisionError
        return timer(self, row, request, **times)

    monkeypatch.setattr(RowReader, "timer", read)
    for name, value in program.settings(SHOP).items():
        monkeypatch.setenv(name, value)
    server = Server(load_settings({"data_dir": tmp_path, "port": 0, "agent_enabled": False}))
    await server.start()
    try:
        program.write(SHOP, NOWHERE, "odd", delay="1h")
        program.write(SHOP, NOWHERE, "even", delay="1h")
        await until(lambda: program.left() == ["odd"])
        assert undecided(program) and server.fatal is None
        fails = False
        await emptied(program)
    finally:
        await server.stop()


async def test_postgresql_announces_commits(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The table would be polled only after the test's end."""
    program, _ = await new_program(request, "postgresql")
    assert json.loads(await program.cli("migrate", "--json"))["notify"] is True
    calls = Calls()
    async with Receiver(calls) as receiver, draining(tmp_path, program, poll="1h"):
        for n in range(3):
            program.write(SHOP, receiver.url, f"t{n}")
            await calls.count(n + 1)
    # Migrating again changes nothing, but for the trigger.
    assert json.loads(await program.cli("migrate", "--no-notify", "--json"))["notify"] is False
    (tmp_path / "polled").mkdir()
    async with Receiver(calls) as receiver, draining(tmp_path / "polled", program):
        program.write(SHOP, receiver.url, "polled")
        await calls.count(4)


@pytest.mark.parametrize("kind", KINDS)
async def test_only_the_inbox_notices_that_its_database_is_away(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    program, database = await new_program(request, kind, own=True)
    calls = Calls()
    await asyncio.to_thread(database.stop)
    async with Receiver(calls) as receiver, draining(tmp_path, program) as (server, api):

        async def is_away() -> bool:
            return (await metrics(server))["tocsin_inbox_away_seconds"] > 0

        async def answers() -> bool:
            return not await is_away()

        async def away(*ids: str) -> None:
            await until(is_away)
            status, body = await ready(server)
            assert (status, body["status"]) == (200, "ready")
            assert "inbox: its database has not answered" in body["notices"][0]
            for each in ids:
                await api.create(each, receiver.url, namespace=SHOP)
            # Whoever waited for the database would wait until after this.
            await calls.wait(lambda made: {call.body["timerId"] for call in made} >= set(ids))

        await away("healthy-1", "healthy-2")
        await asyncio.to_thread(database.start)
        # It is there, and lacks the table.
        await until(lambda: "tocsin inbox migrate" in server.log())
        code, found, _ = await command("doctor", env=program.settings(SHOP) | {"TOCSIN_PORT": "0"})
        assert (code, "fail  inbox" in found, "tocsin inbox migrate" in found) == (1, True, True), found
        await program.cli("migrate")
        program.write(SHOP, receiver.url, "first")
        await calls.wait(lambda made: any(call.body["timerId"] == "first" for call in made))
        await until(answers)
        assert await ready(server) == (200, {"status": "ready"})
        await emptied(program)
        await asyncio.to_thread(database.stop)
        await away("healthy-3")
        await asyncio.to_thread(database.start)
        program.write(SHOP, receiver.url, "second")
        await calls.wait(lambda made: any(call.body["timerId"] == "second" for call in made))
    assert len(calls.calls) == 5
    assert "inbox interrupted" in server.log()


async def test_a_database_that_hangs_delays_no_timer_and_no_stop(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    program, database = await new_program(request, "mysql", own=True)
    await program.cli("migrate")
    calls = Calls()
    # Whoever waited for the database would wait for longer than this test does.
    hangs = {"TOCSIN_DATABASE_STATEMENT_TIMEOUT": "10m"}
    async with Receiver(calls) as receiver, draining(tmp_path, program, **hangs) as (server, api):
        program.write(SHOP, receiver.url, "first")
        await calls.count(1)
        database.pause()
        try:
            for n in range(5):
                await api.create(f"healthy-{n}", receiver.url, namespace=SHOP)
            await calls.count(6)
            async with asyncio.timeout(PATIENCE_S):
                assert await server.stop() == 0
        finally:
            database.resume()


async def test_rows_that_the_server_may_not_delete_create_nothing(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    program, _ = await new_program(request, "postgresql")
    await program.cli("migrate")
    role = "r" + program.url.rpartition("/")[2]
    program.execute(f"CREATE ROLE {role} LOGIN")
    program.execute(f"GRANT SELECT ON tocsin_outbox TO {role}")
    program.write(SHOP, NOWHERE, "a", delay="1h")
    reader = Program(program.url.replace("postgres@", f"{role}@"))
    async with draining(tmp_path, reader) as (server, api):
        await until(lambda: "permission denied" in server.log())
        _, page = await api("timers/list", namespace=SHOP)
        assert page["timers"] == []
        program.execute(f"GRANT UPDATE, DELETE ON tocsin_outbox TO {role}")
        await emptied(program)
        assert (await api.get("a", namespace=SHOP))["status"] == "pending"


async def test_rows_wait_while_the_engines_store_is_away(
    tmp_path: Path, request: pytest.FixtureRequest, program: Program
) -> None:
    _, store = await new_program(request, "postgresql", own=True)
    url = await store.create_database()
    async with draining(tmp_path, program, "--store", url) as (server, api):
        await asyncio.to_thread(store.stop)
        program.write(SHOP, NOWHERE, "a", "b", delay="1h")

        async def is_unready() -> bool:
            return (await ready(server))[0] == 503

        await until(is_unready)
        assert program.left() == ["a", "b"]
        await asyncio.to_thread(store.start)
        await emptied(program)
        _, page = await api("timers/list", namespace=SHOP)
        assert sorted(timer["id"] for timer in page["timers"]) == ["a", "b"]
        assert not program.execute("SELECT id FROM tocsin_outbox WHERE dead_reason IS NOT NULL")


async def test_the_audit_trail_names_whose_rows_create_timers(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    program, _ = await new_program(request, "postgresql")
    await program.cli("migrate")
    env = program.settings("shop") | {"TOCSIN_INBOX_SOURCE": "shop database"}
    env["TOCSIN_INBOX_URL"] = program.url.replace("postgres@", "postgres:pa55word@")
    async with serving(tmp_path, "--no-agent", env=env) as server:
        api = Api(server)

        async def entries() -> list[Any]:
            _, page = await api("audit/list", action=["inbox_opened"])
            return list(page["entries"])

        async def is_written() -> bool:
            return bool(await entries())

        await until(is_written)
        (entry,) = await entries()
        assert (entry["subject"], entry["source"], entry.get("keyId")) == ("shop database", "inbox", None)
        assert entry["details"]["namespaces"] == ["shop"]
        assert "pa55word" not in str(entry) and "postgresql://" in entry["details"]["database"]
        assert "pa55word" not in server.log()
    code, shown, _ = await command("config", "show", env=env)
    assert (code, "inbox.url" in shown, "pa55word" in shown) == (0, True, False)


async def test_an_inbox_without_namespaces_is_refused(tmp_path: Path) -> None:
    for env, expected in (
        ({"TOCSIN_INBOX_URL": "postgresql://shop:pa55word@db/shop"}, "inbox.namespaces: is missing"),
        ({"TOCSIN_INBOX_URL": "sqlite:///shop.db", "TOCSIN_INBOX_NAMESPACES": "shop"}, "is not the URL of a database"),
        ({"TOCSIN_INBOX_URL": "mysql://db", "TOCSIN_INBOX_NAMESPACES": "shop"}, "inbox.url: mysql://db has no valid"),
        (
            {"TOCSIN_INBOX_URL": "mysql://db/a", "TOCSIN_INBOX_NAMESPACES": "a/b", "TOCSIN_INBOX_TABLE": "a b"},
            "is not a namespace's name",
        ),
    ):
        code, _, err = await command("serve", "--port", "0", "--data-dir", str(tmp_path), env=env)
        assert (code, expected in err) == (2 if "is missing" in expected or "is not" in expected else 1, True), err
        assert "pa55word" not in err
    code, _, err = await command("inbox", "list")
    assert (code, "inbox.url: is missing" in err) == (2, True)

"""Dead rows of the inbox through the server: listed, replayed and deleted by its API, and audited."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.integration.server.conftest import serving
from tests.support.calls import Api
from tests.support.command import command
from tests.support.inbox import KINDS, Program, new_program
from tests.support.patience import PATIENCE_S
from tocsin.model.audit import AuditAction, AuditSource, Detail
from tocsin.model.validation import InputLimits, InputRules
from tocsin.ports.audit import Actor, NoAudit
from tocsin.ports.inbox import DeadRows, NodeInbox
from tocsin.server.inbox import inbox_table
from tocsin.settings import load_settings
from tocsin.stores.inbox import table as statements
from tocsin.web.http import inbox as wire
from tocsin.web.http.errors import InboxUnavailable

SHOP = "default"
NOWHERE = "http://127.0.0.1:9/"


@pytest.fixture(params=KINDS)
async def program(request: pytest.FixtureRequest) -> Program:
    made, _ = await new_program(request, request.param)
    await made.cli("migrate")
    return made


async def dead(program: Program, count: int) -> None:
    """Returns when so many rows are dead, and no other is left."""
    async with asyncio.timeout(PATIENCE_S):
        while program.execute(  # noqa: ASYNC110 -- the table does not notify
            "SELECT count(*), count(dead_reason) FROM tocsin_outbox"
        ) != [(count, count)]:
            await asyncio.sleep(0.05)


async def listed(api: Api, **sent: Any) -> list[str]:
    """The timers of all pages."""
    found: list[str] = []
    while True:
        status, page = await api("inbox/list", **sent)
        assert status == 200, page
        found += [row["timerId"] for row in page["rows"]]
        if "nextCursor" not in page:
            return found
        sent["cursor"] = page["nextCursor"]


async def test_dead_rows_are_listed_replayed_and_deleted(tmp_path: Path, program: Program) -> None:
    env = program.settings(SHOP, "missing") | {"TOCSIN_INBOX_SOURCE": "shop database"}
    async with serving(tmp_path, "--no-agent", env=env) as server:
        api = Api(server)
        assert await listed(api) == []
        program.write("missing", NOWHERE, *(f"m{n}" for n in range(5)), delay="1h")
        program.write("foreign", NOWHERE, "f0", "f1", delay="1h")
        await dead(program, 7)
        assert await listed(api, limit=2) == ["m0", "m1", "m2", "m3", "m4", "f0", "f1"]
        _, page = await api("inbox/list", namespace="foreign")
        assert [row["namespace"] for row in page["rows"]] == ["foreign"] * 2
        first, second = (row["id"] for row in page["rows"])
        assert "is not among inbox.namespaces" in page["rows"][0]["deadReason"]

        assert (await api("namespaces/create", name="missing"))[0] == 200
        assert await api("inbox/replay", namespace="missing") == (200, {"replayed": 5, "more": False})
        await dead(program, 2)
        assert (await api.get("m4", namespace="missing"))["status"] == "pending"
        assert await api("inbox/delete", ids=[first, "none"]) == (200, {"deleted": 1, "more": False})
        assert await api("inbox/delete", ids=[first]) == (200, {"deleted": 0, "more": False})
        assert program.left() == ["f1"]
        # It dies again.
        assert await api("inbox/replay", ids=[second]) == (200, {"replayed": 1, "more": False})
        await dead(program, 1)
        assert await api("inbox/delete", all=True) == (200, {"deleted": 1, "more": False})
        assert program.left() == []

        _, page = await api("audit/list", action=["inbox_replayed", "inbox_deleted"])
        entries = [(each["action"], each["subject"], each["details"]) for each in reversed(page["entries"])]
        assert entries == [
            ("inbox_replayed", "shop database", {"count": 5, "namespace": "missing"}),
            ("inbox_deleted", "shop database", {"count": 1, "ids": [first, "none"]}),
            ("inbox_replayed", "shop database", {"count": 1, "ids": [second]}),
            ("inbox_deleted", "shop database", {"count": 1}),
        ]
        assert {each["source"] for each in page["entries"]} == {"api"}


async def test_requests_that_name_no_rows_or_too_many_ways_are_refused(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    program, _ = await new_program(request, "postgresql")
    await program.cli("migrate")
    program.execute(
        "INSERT INTO tocsin_outbox VALUES ('a', 'foreign', 't', '{}', 0, 0, 'X: y')",
    )
    async with serving(tmp_path, "--no-agent", env=program.settings(SHOP)) as server:
        api = Api(server)
        for sent in (
            {},
            {"all": False},
            {"ids": []},
            {"ids": ["a"], "all": True},
            {"namespace": "foreign", "ids": ["a"]},
        ):
            for operation in ("replay", "delete"):
                status, problem = await api(f"inbox/{operation}", **sent)
                assert (status, problem["errors"][0]["path"]) == (400, "ids"), (sent, problem)
        assert program.left() == ["t"]


async def test_only_admins_of_the_whole_service_reach_dead_rows(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    program, _ = await new_program(request, "postgresql")
    await program.cli("migrate")
    data = str(tmp_path / "data")
    keys = {}
    for role, limited in (("admin", ()), ("admin", ("--namespace", SHOP)), ("write", ())):
        code, out, err = await command("keys", "create", "--role", role, *limited, "--data-dir", data)
        assert code == 0, err
        keys[role, bool(limited)] = out.strip()
    async with serving(tmp_path, "--no-agent", env=program.settings(SHOP)) as server:
        for (role, limited), key in keys.items():
            api = Api(server, {"authorization": f"Bearer {key}"})
            expected = 200 if role == "admin" and not limited else 403
            for operation, sent in (("list", {}), ("replay", {"all": True}), ("delete", {"all": True})):
                assert (await api(f"inbox/{operation}", **sent))[0] == expected, (role, limited, operation)


async def test_a_server_without_an_inbox_has_no_rows(tmp_path: Path) -> None:
    async with serving(tmp_path, "--no-agent") as server:
        status, problem = await Api(server)("inbox/list")
        assert (status, problem["error"]) == (404, "ROUTE_NOT_FOUND")
        assert "inbox.url" in problem["message"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_database_that_is_away_is_named(tmp_path: Path, request: pytest.FixtureRequest, kind: str) -> None:
    program, database = await new_program(request, kind, own=True)
    async with serving(tmp_path, "--no-agent", env=program.settings(SHOP)) as server:
        api = Api(server)
        status, problem = await api("inbox/list")
        assert (status, problem["error"]) == (503, "INBOX_UNAVAILABLE")
        assert "tocsin inbox migrate" in problem["message"]
        await program.cli("migrate")
        assert await listed(api) == []
        await asyncio.to_thread(database.stop)
        status, problem = await api("inbox/delete", all=True)
        assert (status, problem["error"]) == (503, "INBOX_UNAVAILABLE")


async def test_many_rows_are_changed_in_parts_and_each_once(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "_CHANGED_AT_ONCE", 3)
    for n in range(10):
        program.execute(
            "INSERT INTO tocsin_outbox VALUES (%s, %s, 't', '{}', 0, 7, %s)",
            f"row-{n}",
            "even" if n % 2 == 0 else "odd",
            None if n == 9 else "X: y",
        )

    def state() -> str:
        rows = program.execute("SELECT dead_reason, due_at FROM tocsin_outbox ORDER BY id")
        return "".join("w" if reason is None and not due_at else "." for reason, due_at in rows)

    for name, value in program.settings(SHOP).items():
        monkeypatch.setenv(name, value)
    table = inbox_table(load_settings())
    try:
        assert [each async for each in table.revive(DeadRows("even", (), 4))] == [3, 1]
        assert state() == "w.w.w.w..."
        assert [each async for each in table.revive(DeadRows(None, (), 2))] == [2]
        assert state() == "wwwww.w..."
        assert [each async for each in table.discard(DeadRows(None, [f"row-{n}" for n in range(10)]))] == [0, 1, 2, 0]
        assert [each async for each in table.discard(DeadRows())] == []
    finally:
        await table.close()
    left = [row_id for (row_id,) in program.execute("SELECT id FROM tocsin_outbox ORDER BY id")]
    assert left == [f"row-{n}" for n in (0, 1, 2, 3, 4, 6, 9)]


async def test_a_change_that_fails_in_the_middle_is_in_the_trail(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    program, _ = await new_program(request, "postgresql")
    await program.cli("migrate")
    program.execute(
        "INSERT INTO tocsin_outbox SELECT 'row-' || n, 'foreign', 't-' || n, '{}', 0, 0, 'X: y' "
        "FROM generate_series(1000, 2499) AS n"
    )
    program.execute(
        "CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'not this one'; END$$; "
        "CREATE TRIGGER fails BEFORE DELETE ON tocsin_outbox FOR EACH ROW WHEN (OLD.id = 'row-2200') "
        "EXECUTE FUNCTION fails()"
    )
    async with serving(tmp_path, "--no-agent", env=program.settings(SHOP)) as server:
        api = Api(server)
        status, problem = await api("inbox/delete", all=True)
        assert (status, problem["error"]) == (503, "INBOX_UNAVAILABLE")
        assert "not this one; 1000 rows were changed before" in problem["message"]
        assert len(program.left()) == 500
        _, page = await api("audit/list", action=["inbox_deleted"])
        assert [each["details"] for each in page["entries"]] == [{"count": 1_000}]
        program.execute("DROP TRIGGER fails ON tocsin_outbox")
        assert await api("inbox/delete", all=True) == (200, {"deleted": 500, "more": False})


class Trail(NoAudit):
    """Keeps the details of entries."""

    def __init__(self) -> None:
        self.kept: list[Mapping[str, Detail] | None] = []

    async def write(
        self, action: AuditAction, actor: Actor, subject: str = "", details: Mapping[str, Detail] | None = None
    ) -> None:
        self.kept.append(details)


async def test_a_slow_database_is_asked_for_part_of_the_rows(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, _ = await new_program(request, "postgresql")
    await program.cli("migrate")
    for n in range(5):
        program.execute("INSERT INTO tocsin_outbox VALUES (%s, 'foreign', 't', '{}', 0, 7, 'X: y')", f"row-{n}")
    for name, value in program.settings(SHOP).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(statements, "_CHANGED_AT_ONCE", 3)
    table, trail, actor = inbox_table(load_settings()), Trail(), Actor(None, "", AuditSource.API)
    requests = wire.InboxRequests(NodeInbox(table, "shop"), InputRules(InputLimits(), lambda url: None), trail)
    try:
        with monkeypatch.context() as slow:
            # However fast it is, a transaction takes too long.
            slow.setattr(wire, "_CHANGES_S", 0.0)
            assert await requests.replay(wire.ChangeInbox(all=True), actor) == wire.ReplayedRows(3, more=True)
        assert await requests.replay(wire.ChangeInbox(all=True), actor) == wire.ReplayedRows(2, more=False)
        with monkeypatch.context() as hanging:
            hanging.setattr(wire, "_PATIENCE_S", 0.0)
            with pytest.raises(InboxUnavailable, match="no answer"):
                await requests.delete(wire.ChangeInbox(all=True), actor)
    finally:
        await table.close()
    assert trail.kept == [{"count": 3}, {"count": 2}, {"count": 0, "outcome": "unknown"}]

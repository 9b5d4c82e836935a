"""What `tocsin transfer` refuses, and service calls that stay or go to a database of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.server.test_agent_flow import new_id, now_us, submit
from tests.support.calls import Api
from tests.support.command import command
from tests.support.http import Client
from tests.support.server import ServerProcess
from tocsin.model.instants import US_PER_DAY, format_instant
from tocsin.server import node
from tocsin.server.transfer_mark import TransferMark, TransferRefused, put_mark
from tocsin.settings import load_settings
from tocsin.stores.postgresql.store import PostgresStore

NOWHERE = "http://127.0.0.1:9/hook"


async def transfer(*arguments: str, timeout_s: float = 60.0) -> tuple[int, str]:
    """Exit code and output."""
    code, out, err = await command("transfer", *arguments, timeout_s=timeout_s)
    return code, out + err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "--from: name the store to move"),
        (("--from", "sqlite:///a/tocsin.db"), "--to: name the store"),
        (("--from", "memory://", "--to", "sqlite:///b/tocsin.db"), "memory:// is not a file"),
        (("--from", "sqlite:///missing/tocsin.db", "--to", "sqlite:///b/tocsin.db"), "there is no store at missing"),
    ],
)
async def test_what_is_named_wrongly_is_refused_and_leaves_nothing(arguments: tuple[str, ...], reason: str) -> None:
    code, output = await transfer(*arguments)
    assert code in (1, 2)
    assert reason in output
    assert not Path("missing").exists()
    assert not Path("b").exists()


@pytest.mark.parametrize("variable", ["TOCSIN_STORE", "TOCSIN_DATA_DIR"])
async def test_the_environment_replaces_nothing_that_a_file_names(variable: str, tmp_path: Path) -> None:
    config = tmp_path / "a.toml"
    config.write_text('store = "sqlite:///a/tocsin.db"\n')
    around = {variable: "sqlite:///b/tocsin.db"}
    to = ("--to", "sqlite:///c/tocsin.db")
    code, _, error = await command("transfer", "--from-config", str(config), *to, timeout_s=60.0, env=around)
    assert code == 2
    assert f"{variable} would replace" in " ".join(error.split())


async def test_a_key_is_created_where_the_timers_are(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    at_old = ("keys", "create", "--role", "admin", "--data-dir", str(old))
    assert (await command(*at_old))[0] == 0
    code, output = await transfer("--from", f"sqlite:///{old}/tocsin.db", "--to", f"sqlite:///{new}/tocsin.db")
    assert (code, f"There is no {old}/agent.db" in " ".join(output.split())) == (0, True), output
    code, _, refusal = await command(*at_old)
    assert (code, "were transferred to" in refusal, str(new) in refusal) == (1, True, True), refusal
    assert (await command("keys", "create", "--role", "admin", "--data-dir", str(new)))[0] == 0


async def test_calls_need_a_place_and_are_moved_there(server_with_agent: ServerProcess, tmp_path: Path) -> None:
    server, tenant = server_with_agent, new_id()
    client, due_at = Client(server.address), format_instant(now_us() + US_PER_DAY)
    submitted = [await submit(client, tenant, NOWHERE, dueAt=due_at) for _ in range(3)]
    source = ("--from", f"sqlite:///{server.data_dir / 'tocsin.db'}")
    code, output = await transfer(*source, "--to", f"sqlite:///{tmp_path / 'b' / 'tocsin.db'}", "--dry-run", "--json")
    assert (code, '"calls": null' in output.replace('":null', '": null')) == (0, True), output
    assert await server.stop() == 0
    # Refused before anybody looks for that server.
    code, output = await transfer(*source, "--to", "mysql://nobody@127.0.0.1:9/tocsin")
    assert (code, "has service calls, and the target has no agent.database" in output) == (1, True), output
    folder, calls = tmp_path / "moved", tmp_path / "calls" / "agent.db"
    config = tmp_path / "target.toml"
    config.write_text(f'store = "sqlite:///{folder / "tocsin.db"}"\nagent.database = "sqlite:///{calls}"\n')
    code, output = await transfer(*source, "--to-config", str(config), "--json")
    assert (code, '"calls": 3' in output.replace('":3', '": 3')) == (0, True), output
    after = ServerProcess(folder, "--agent-database", f"sqlite:///{calls}")
    await after.start()
    found = (await Client(after.address).get(f"/api/v1/tenants/{tenant}/service-calls?limit=10"))[1]["serviceCalls"]
    assert {(each["serviceCallId"], each["status"]) for each in found} == {(each, "Scheduled") for each in submitted}
    assert await after.stop() == 0


@pytest.mark.parametrize("names", ["environment", "file"])
async def test_calls_are_found_in_the_data_folder_of_a_store_elsewhere(names: str, tmp_path: Path) -> None:
    store, folder, moved = tmp_path / "fast" / "tocsin.db", tmp_path / "data", tmp_path / "moved"
    (tmp_path / "fast").mkdir()
    server = ServerProcess(folder, "--store", f"sqlite:///{store}")
    await server.start()
    await submit(Client(server.address), new_id(), NOWHERE, dueAt=format_instant(now_us() + US_PER_DAY))
    assert await server.stop() == 0
    config = tmp_path / "source.toml"
    config.write_text(f'data_dir = "{folder}"\n')
    source = ("--from", f"sqlite:///{store}", *(("--from-config", str(config)) if names == "file" else ()))
    around = {"TOCSIN_DATA_DIR": str(folder)} if names == "environment" else {}
    to = ("--to", f"sqlite:///{moved / 'tocsin.db'}")
    code, out, err = await command("transfer", *source, *to, "--json", timeout_s=60.0, env=around)
    assert (code, json.loads(out)["calls"], "There is no" in err) == (0, 1, False), err
    assert (moved / "agent.db").exists()


async def test_calls_stay_in_a_database_that_both_sides_name(server_with_agent: ServerProcess, tmp_path: Path) -> None:
    server, tenant = server_with_agent, new_id()
    await submit(Client(server.address), tenant, NOWHERE, dueAt=format_instant(now_us() + US_PER_DAY))
    await Api(server).create("a", NOWHERE, delay="1h")
    assert await server.stop() == 0
    config = tmp_path / "target.toml"
    config.write_text(f'agent.database = "sqlite:///{server.data_dir / "agent.db"}"\n')
    folder = tmp_path / "moved"
    code, output = await transfer(
        "--from",
        f"sqlite:///{server.data_dir / 'tocsin.db'}",
        "--to",
        f"sqlite:///{folder / 'tocsin.db'}",
        "--to-config",
        str(config),
    )
    assert code == 0, output
    assert not (folder / "agent.db").exists()
    after = ServerProcess(folder, "--agent-database", f"sqlite:///{server.data_dir / 'agent.db'}")
    await after.start()
    client = Client(after.address)
    found = (await client.get(f"/api/v1/tenants/{tenant}/service-calls?limit=10"))[1]["serviceCalls"]
    assert len(found) == 1
    assert (await Api(after).get("a"))["status"] == "pending"
    assert await after.stop() == 0


async def test_a_server_looks_again_behind_its_first_heartbeat(
    tmp_path: Path, postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the mark had been written just after the server had opened its store."""

    async def before_the_mark(self: object, records: object) -> None:
        return None

    monkeypatch.setattr(node.Patience, "refuse_transferred", before_the_mark)
    store = PostgresStore(postgresql_url)
    await store.open(2)
    await put_mark(store, TransferMark("source", "ab" * 16, "elsewhere", 0))
    settings = load_settings(
        {"store": postgresql_url, "port": 0, "data_dir": tmp_path / "data", "agent_enabled": False, "node_name": "a"}
    )
    server = node.Server(settings)
    with pytest.raises(TransferRefused, match="transferred to elsewhere"):
        await server.start()
    assert await store.shards() == []
    await store.close()

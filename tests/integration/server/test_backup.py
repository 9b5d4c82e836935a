"""Restoring a backup, on a real server."""

from __future__ import annotations

from pathlib import Path

from tests.support.calls import Api, Inbox
from tests.support.command import command
from tests.support.http import Receiver
from tests.support.server import ServerProcess


async def test_a_timer_that_fired_since_the_backup_fires_again_under_the_same_webhook_id(
    server_with_agent: ServerProcess, tmp_path: Path
) -> None:
    server = server_with_agent
    api, inbox = Api(server), Inbox()
    async with Receiver(inbox) as receiver:
        # Paused, so that nothing depends on how long the copy takes; it is taken while the server runs.
        await pause(api, True)
        assert (await api("namespaces/create", name="other"))[0] == 200
        await api.create("before", receiver.url, delay="0s")
        kept, folder = tmp_path / "kept", ("--data-dir", str(server.data_dir))
        assert (await command("backup", str(kept), *folder))[0] == 0
        assert {path.name for path in kept.iterdir()} == {"tocsin.db", "agent.db", "backup.json"}
        assert not [path for path in (kept, *kept.iterdir()) if path.stat().st_mode & 0o077]
        await api.create("after", receiver.url, delay="0s")
        await pause(api, False)
        await inbox.count(2)
        code, _, refusal = await command("restore", str(kept), *folder)
        assert (code, "in use by another Tocsin" in refusal) == (1, True)
        await server.stop()
        code, _, refusal = await command("restore", str(kept), *folder)
        assert (code, "tocsin.db exists" in refusal) == (2, True)
        for name in ("tocsin.db", "agent.db"):
            (server.data_dir / name).rename(tmp_path / name)
        assert (await command("restore", str(kept), "--pause", *folder))[0] == 0
        await server.start()
        listed = (await api("namespaces/list"))[1]["namespaces"]
        assert {entry["name"]: entry["paused"] for entry in listed} == {"default": True, "other": True}
        assert [timer["id"] for timer in (await api("timers/list", namespace="default"))[1]["timers"]] == ["before"]
        await pause(api, False)
        calls = await inbox.count(3)
        timers = {call.headers["webhook-id"]: call.body["timerId"] for call in calls}
        assert sorted(timers.values()) == ["after", "before"]
        assert [call.body["timerId"] for call in calls][2] == "before"
        assert (await api("timers/get", namespace="default", timerId="after"))[0] == 404
        # What fired since the backup is lost.
        assert "nothing acknowledged is lost" not in server.log()


async def pause(api: Api, paused: bool) -> None:
    status, answer = await api("namespaces/update", name="default", paused=paused)
    assert status == 200, answer


async def test_a_damaged_or_partial_backup_is_refused_and_leaves_nothing(
    server_with_agent: ServerProcess, tmp_path: Path
) -> None:
    server = server_with_agent
    kept, target = tmp_path / "kept", tmp_path / "target"
    restore = ("restore", str(kept), "--data-dir", str(target))
    assert (await command("backup", str(kept), "--data-dir", str(server.data_dir)))[0] == 0
    code, _, refusal = await command("backup", str(kept), "--data-dir", str(server.data_dir))
    assert (code, "is not an empty folder" in refusal) == (2, True)
    with (kept / "agent.db").open("ab") as file:
        file.write(b"x")
    code, _, refusal = await command(*restore)
    assert (code, "agent.db is not as it was written" in refusal) == (1, True)
    (kept / "backup.json").unlink()
    code, _, refusal = await command(*restore)
    assert (code, "is not a whole backup" in refusal) == (2, True)
    assert not target.exists()


async def test_a_database_on_a_server_is_left_to_its_own_tools(tmp_path: Path) -> None:
    code, _, refusal = await command("backup", str(tmp_path / "kept"), "--store", "postgresql://db.internal/tocsin")
    assert (code, "with the tools of the database server" in refusal) == (2, True)
    assert not (tmp_path / "kept").exists()

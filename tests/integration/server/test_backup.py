"""Restoring a backup, on a real server."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing

from tests.support.calls import Api, Inbox
from tests.support.http import Receiver
from tests.support.server import ServerProcess


async def test_a_timer_that_fired_since_the_backup_fires_again_under_the_same_webhook_id(
    server: ServerProcess,
) -> None:
    api, inbox = Api(server), Inbox()
    async with Receiver(inbox) as receiver:
        # Paused, so that nothing depends on how long the copy takes; it is taken while the server runs.
        await pause(api, True)
        await api.create("before", receiver.url, delay="0s")
        kept = server.data_dir / "kept.db"
        with closing(sqlite3.connect(server.data_dir / "tocsin.db")) as of, closing(sqlite3.connect(kept)) as to:
            of.backup(to)
        await api.create("after", receiver.url, delay="0s")
        await pause(api, False)
        await inbox.count(2)
        await server.stop()
        shutil.copy(kept, server.data_dir / "tocsin.db")
        await server.start()
        # The copy has the namespace paused, as the page on backups has it done.
        assert [timer["id"] for timer in (await api("timers/list", namespace="default"))[1]["timers"]] == ["before"]
        await pause(api, False)
        calls = await inbox.count(3)
        timers = {call.headers["webhook-id"]: call.body["timerId"] for call in calls}
        assert sorted(timers.values()) == ["after", "before"]
        assert [call.body["timerId"] for call in calls][2] == "before"
        assert (await api("timers/get", namespace="default", timerId="after"))[0] == 404


async def pause(api: Api, paused: bool) -> None:
    status, answer = await api("namespaces/update", name="default", paused=paused)
    assert status == 200, answer

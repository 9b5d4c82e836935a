"""A node on a database in which rows are damaged: it goes on with all others, and answers for the damaged ones. What each
store makes of damage is in its conformance tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.calls import Api, Inbox
from tests.support.damage import damage
from tests.support.http import Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.model.ids import timer_uuid
from tocsin.ports.store import Found, Store
from tocsin.server import open_store
from tocsin.settings.load import load_settings

#: Of these 60, one is damaged.
NAMES = [f"due-{number:02}" for number in range(60)]
DAMAGED = DAMAGED_DUE, DAMAGED_SOON, DAMAGED_FAR, DAMAGED_ENDED = (NAMES[30], "soon", "far", "ended")
#: Within the window that a node loads into memory, and behind it, where a write reads the row from the store.
SOON, FAR = "4m", "720h"


@pytest.fixture(params=["sqlite", "dynamodb"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database, or of one that can be created."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'data' / 'tocsin.db'}"
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@asynccontextmanager
async def opened(url: str, folder: Path) -> AsyncIterator[tuple[Store, int]]:
    """The store of a node that has stopped, and its number of shards."""
    store = open_store(load_settings({"store": url, "data_dir": folder}), create=False)
    try:
        yield store, await store.open(None)
    finally:
        await store.close()


async def found(store: Store, total_shards: int, name: str) -> tuple[int, Found]:
    """Where the timer is, and what is stored of it."""
    uuid = timer_uuid("default", name)
    for shard_id in range(total_shards):
        if at := (await store.fetch(shard_id, [uuid])).get(uuid):
            return shard_id, at
    raise AssertionError(name)


async def damage_all(url: str, folder: Path) -> None:
    """Damages the rows of the timers in `DAMAGED`."""
    async with opened(url, folder) as (store, total_shards):
        for name in DAMAGED:
            shard_id, (live, ended) = await found(store, total_shards, name)
            row = ended if name == DAMAGED_ENDED else live
            assert row is not None
            await damage(store, row, shard_id)


async def suspended(api: Api, name: str) -> None:
    """Returns when the node has suspended the damaged timer."""
    async with asyncio.timeout(PATIENCE_S):
        while not (await api.get(name)).get("suspended", "").startswith("bad_record: "):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_damaged_rows_stop_neither_other_timers_nor_the_node(tmp_path: Path, store_url: str) -> None:
    """The namespace is paused while rows are damaged, so that all of them are due at once when the node has loaded them."""
    inbox, folder = Inbox(), tmp_path / "data"
    server = ServerProcess(folder, "--store", store_url, "--shards", "2")
    async with Receiver(inbox) as receiver:
        await server.start()
        api = Api(server)
        await api.create(DAMAGED_ENDED, receiver.url)
        await api.settled(DAMAGED_ENDED, "completed")
        assert (await api("namespaces/update", name="default", paused=True))[0] == 200
        due = {"namespace": "default", "callbackUrl": receiver.url, "delay": "0s"}
        assert (await api("timers/batch/create", timers=[{**due, "id": name} for name in NAMES]))[0] == 200
        await api.create(DAMAGED_SOON, receiver.url, delay=SOON)
        await api.create(DAMAGED_FAR, receiver.url, delay=FAR)
        assert await server.stop() == 0
        await damage_all(store_url, folder)

        await server.start()
        api = Api(server)
        assert (await api("namespaces/update", name="default", paused=False))[0] == 200
        others = {*NAMES, DAMAGED_ENDED} - {DAMAGED_DUE}
        calls = await inbox.wait(lambda calls: others <= {call.body["timerId"] for call in calls})
        assert {call.body["timerId"] for call in calls} == others

        for name in (DAMAGED_DUE, DAMAGED_SOON):
            await suspended(api, name)
        for name in DAMAGED:
            this = {"namespace": "default", "timerId": name}
            assert "can't be read" in (await api.get(name))["lastError"]
            status, refused = await api("timers/update", **this, tags=["a"])
            assert (status, name in refused["message"]) == (409, True)
            new = {"namespace": "default", "id": name, "callbackUrl": receiver.url, "delay": FAR}
            status, refused = await api("timers/create", **new, onConflict="keep")
            assert (status, name in refused["message"]) == (409, True)
            assert (await api("timers/delete", **this))[0] == (409 if name == DAMAGED_ENDED else 204)
        status, listed = await api("timers/list", namespace="default", limit=1_000)
        assert (status, others <= {timer["id"] for timer in listed["timers"]} | {DAMAGED_ENDED}) == (200, True)
        inbox.calls.clear()
        for name in DAMAGED:
            await api.create(name, receiver.url)
        await inbox.wait(lambda calls: {call.body["timerId"] for call in calls} == set(DAMAGED))
        assert await server.stop() == 0
    assert "Traceback" not in server.log()

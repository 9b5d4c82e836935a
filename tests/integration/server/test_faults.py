"""Faults of disks, files and receivers: nothing is lost, and the error names the cause."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.calls import Api, Inbox
from tests.support.command import command
from tests.support.http import Receiver
from tests.support.needs import lacking
from tests.support.server import ServerProcess


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MiB, where the machine allows mounting one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.geteuid() == 0 and not subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)], capture_output=True, check=False
    ).returncode  # fmt: skip
    if not mounted:
        lacking("tmpfs", "it takes the right to mount one")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@contextlib.asynccontextmanager
async def silent() -> AsyncIterator[str]:
    """The URL of a receiver that accepts requests and never responds."""
    held: list[asyncio.StreamWriter] = []

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    listener = await asyncio.start_server(hold, "127.0.0.1", 0, backlog=2048)
    yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/"
    listener.close()
    for writer in held:
        writer.close()


def fill_up(folder: Path) -> None:
    """Fills the disk."""
    with contextlib.suppress(OSError), (folder / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4_096))


async def refused_start(server: ServerProcess) -> str:
    """The log of a server that must not start; it must end with code 1."""
    with pytest.raises(AssertionError, match="the server ended"):
        await server.start()
    assert server.process is not None
    assert await server.process.wait() == 1
    return server.log()


async def test_a_thousand_timers_to_a_silent_host_do_not_delay_others(server: ServerProcess) -> None:
    api, inbox = Api(server), Inbox()
    async with silent() as dead, Receiver(inbox) as receiver:
        timers = [
            {
                "namespace": "default",
                "id": f"dead-{i}",
                "callbackUrl": dead,
                "delay": "0s",
                "callbackTimeoutSeconds": 60,
            }
            for i in range(1_000)
        ]
        assert (await api("timers/batch/create", timers=timers))[0] == 200
        for i in range(100):
            await api.create(f"alive-{i}", receiver.url)
        await inbox.count(100)
        # Every one of the dead is still within its first attempt or waiting for its turn: the others did not wait for them.
        status, listed = await api("timers/list", namespace="default", status="pending", limit=1_000)
        assert (status, len(listed["timers"])) == (200, 1_000)
        await server.kill()
    await server.start()


async def test_a_full_disk_refuses_writes_and_recovers(small_disk: Path) -> None:
    server, inbox = ServerProcess(small_disk / "data"), Inbox()
    async with Receiver(inbox) as receiver:
        await server.start()
        api = Api(server)
        await api.create("before", receiver.url, delay="3s")
        # After the lease would have ended, which the server can't renew in writing.
        await api.create("long after", receiver.url, delay="16s")
        acknowledged, refusal = 0, None
        for i in range(400):
            status, answer = await api(
                "timers/create",
                namespace="default",
                id=f"big-{i}",
                callbackUrl=receiver.url,
                delay="1h",
                payload="x" * 90_000,
            )
            if status != 200:
                refusal = (status, answer)
                break
            acknowledged += 1
        assert refusal is not None
        assert refusal[0] == 503
        assert "full" in refusal[1]["detail"]
        fill_up(small_disk)
        # What the log of the database had left of its own.
        while (await api("timers/create", namespace="default", id="small", callbackUrl=receiver.url, delay="1h"))[
            0
        ] == 200:
            pass
        async with httpx.AsyncClient(base_url=server.url) as client:
            ready = await client.get("/readyz")
            assert (ready.status_code, "until there is space" in ready.text) == (503, True), ready.text
            metrics = (await client.get("/metrics")).text
            assert "tocsin_store_free_bytes 0.0" in metrics
            assert 'tocsin_store_bytes{file="wal"}' in metrics
        calls = await inbox.count(2)
        assert [call.body["timerId"] for call in calls] == ["before", "long after"]
        (small_disk / "filler").unlink()
        subprocess.run(["mount", "-o", "remount,size=200m", str(small_disk)], check=True)
        await api.settled("before", "completed")
        await api.settled("long after", "completed")
        await api.create("after", receiver.url, delay="1h")
        async with httpx.AsyncClient(base_url=server.url) as client:
            assert (await client.get("/readyz")).status_code == 200
        for i in range(acknowledged):
            assert (await api.get(f"big-{i}"))["status"] == "pending"
        assert await server.stop() == 0


async def test_a_backup_onto_a_full_disk_names_it_and_leaves_nothing(small_disk: Path, tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    await server.start()
    api = Api(server)
    timers = [
        {
            "namespace": "default",
            "id": f"t-{i}",
            "callbackUrl": "http://127.0.0.1:9/",
            "delay": "1h",
            "payload": "x" * 90_000,
        }
        for i in range(100)
    ]
    assert (await api("timers/batch/create", timers=timers))[0] == 200
    kept, folder = small_disk / "kept", ("--data-dir", str(server.data_dir))
    code, out, err = await command("backup", str(kept), *folder)
    assert (code, out, f"no space left in {kept}" in err) == (1, "", True), err
    assert list(small_disk.iterdir()) == []
    kept.mkdir()
    assert (await command("backup", str(kept), *folder))[0] == 1
    assert list(kept.iterdir()) == []
    await server.stop()


async def test_an_existing_store_on_a_full_disk_refuses_the_start_by_name(small_disk: Path) -> None:
    server = ServerProcess(small_disk / "data")
    server.log_path = small_disk.parent / "server.log"
    await server.start()
    await server.stop()
    fill_up(small_disk)
    assert f"no space left in {small_disk / 'data'}" in await refused_start(server)


async def test_a_read_only_folder_refuses_the_start_by_name(small_disk: Path) -> None:
    data = small_disk / "data"
    server = ServerProcess(data)
    await server.start()
    await server.stop()
    (data / "server.log").unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    server.log_path = small_disk.parent / "server.log"
    log = await refused_start(server)
    assert str(data) in log
    assert "read-only" in log.lower()


async def test_a_damaged_database_refuses_the_start_and_names_the_file(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    await server.start()
    await server.stop()
    database = tmp_path / "data" / "tocsin.db"
    with database.open("r+b") as file:
        file.write(b"\xa5" * 8_192)
    log = await refused_start(server)
    assert str(database) in log

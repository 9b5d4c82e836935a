"""The key of encrypted secrets is rotated while clients create timers and these fire."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.integration.server.test_secret_rotation import FIRST, FORMER, PRESENT, SECOND, listed
from tests.support.command import command
from tests.support.http import Client, Receiver
from tests.support.patience import PATIENCE_S
from tests.support.server import ServerProcess
from tocsin.model.sealed_text import key_ids_in

TIMERS, CLIENTS = 1_200, 8
#: The key is rotated when so many timers are durable.
ROTATED_AT = TIMERS // 3


class Secrets(Receiver):
    """Keeps the secret that each timer was sent with."""

    def __init__(self) -> None:
        super().__init__(lambda body, headers: (200, b""))
        self.found: dict[str, set[str]] = {}
        self._changed = asyncio.Condition()

    async def _respond(self, path: str, headers: dict[str, str], raw: bytes) -> tuple[int, bytes]:
        async with self._changed:
            self.found.setdefault(headers["x-timer"], set()).add(headers["authorization"])
            self._changed.notify_all()
        return 200, b""

    async def have(self, names: set[str]) -> None:
        """Returns when each of the timers has fired."""
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(lambda: names <= self.found.keys())


class Load:
    """Clients that create timers one after another: every other one is due at once, the others in a day."""

    def __init__(self, server: ServerProcess, url: str) -> None:
        self._server, self._url = server, url
        self._left: Iterator[int] = iter(range(TIMERS))
        self.durable = 0
        #: Answers that are neither success nor those of a server that is restarted.
        self.wrong: list[object] = []
        self.reached, self.restarted = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        await asyncio.gather(*(self._client() for _ in range(CLIENTS)))

    async def _client(self) -> None:
        client = Client(self._server.address)
        for number in self._left:
            body = {
                "namespace": "default", "id": f"t{number}", "callbackUrl": f"{self._url}?token=u{number}",
                "delay": "24h" if number % 2 else "0s", "idempotencyKey": f"k{number}",
                "headers": {"Authorization": f"Bearer s{number}", "x-timer": f"t{number}"},
            }  # fmt: skip
            while True:
                try:
                    status, answer = await client.post("/api/v1/timers/create", body)
                except (OSError, EOFError):
                    status, answer = 503, None
                if status != 503:
                    break
                # It is being restarted. The key makes the repetition safe.
                await self.restarted.wait()
            self.wrong += [answer] if status != 200 else []
            self.durable += 1
            if self.durable == ROTATED_AT:
                self.reached.set()


def key_ids(folder: Path) -> set[str]:
    """The keys of all that is stored and not finished."""
    with sqlite3.connect(folder / "tocsin.db") as database:
        rows = [row for table in ("timers", "records") for row in database.execute(f"SELECT * FROM {table}")]
    return {name for row in rows for name in key_ids_in(" ".join(map(str, row)))}


async def counted(folder: Path, keys: Path, is_reached: Callable[[int | None], bool]) -> None:
    """Returns when a pass has counted so many rows that wait with the former key. The command has no notifications, so this
    polls."""
    async with asyncio.timeout(PATIENCE_S):
        while not is_reached((await listed(folder, keys)).get(FORMER, {}).get("waiting")):
            pass


async def test_no_request_fails_and_every_timer_fires_with_its_secret(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(FIRST)
    server = ServerProcess(tmp_path / "data", "--no-agent", env={"TOCSIN_SECRETS_KEY_FILE": str(keys)})
    async with Secrets() as receiver:
        await server.start()
        load = Load(server, receiver.url)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(load.run())
            await load.reached.wait()
            assert await server.stop() == 0
            keys.write_text(f"{SECOND}\n{FIRST}\n")
            await server.start()
            load.restarted.set()
        assert load.wrong == []
        await receiver.have({f"t{number}" for number in range(0, TIMERS, 2)})
        # A pass during the load has rewritten what is due in a day. It may have left what was about to fire.
        await counted(server.data_dir, keys, lambda waiting: waiting is not None)
        assert await server.stop() == 0
        await server.start()
        await counted(server.data_dir, keys, lambda waiting: waiting == 0)
        assert await server.stop() == 0
        assert key_ids(server.data_dir) == {PRESENT}

        keys.write_text(SECOND)
        code, _, err = await command("keys", "secrets", "--forget", FORMER, "--data-dir", str(server.data_dir))
        assert code == 0, err
        await server.start()
        client = Client(server.address)
        later = range(1, TIMERS, 40)
        for number in later:
            named = {"namespace": "default", "timerId": f"t{number}", "delay": "0s"}
            assert (await client.post("/api/v1/timers/update", named))[0] == 200
        await receiver.have({f"t{number}" for number in later})
        assert await server.stop() == 0
    assert receiver.found == {name: {f"Bearer s{name[1:]}"} for name in receiver.found}

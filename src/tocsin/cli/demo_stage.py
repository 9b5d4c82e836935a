"""What the demos of timers and of service calls share: server, receiver, and scenes, as a live table or as lines."""

from __future__ import annotations

import asyncio
import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import httpx
from rich.live import Live
from rich.table import Column, Table
from rich.text import Text

from tocsin.cli import output
from tocsin.cli.failure import Refused
from tocsin.cli.receiver import ReceivedCallback, Receiver, ReceiverResponse
from tocsin.model.instants import parse_instant
from tocsin.server import Server
from tocsin.settings import load_settings
from tocsin.telemetry.logs import configure_logging

POLL_INTERVAL_S = 0.1
#: Time limit of a demo; when it is exceeded, something is wrong.
PATIENCE_S = 30.0
CANCEL_AFTER_S = 1.5


@dataclass
class Scene:
    """One timer or call: what it demonstrates, its status, the instant that it waits for, and what the receiver saw of it."""

    name: str
    shows: str
    status: str = field(default="", init=False)
    due: str | None = field(default=None, init=False)
    seen: list[str] = field(default_factory=list, init=False)

    def results(self) -> list[str]:
        """The lines of the live table."""
        return self.seen


S = TypeVar("S", bound=Scene)


class Demo(ABC, Generic[S]):
    """Plays its scenes once."""

    #: The headings of the live table's first and last column.
    headings: ClassVar[tuple[str, str]]
    #: The statuses of scenes that have not ended.
    unfinished: ClassVar[frozenset[str]]
    #: The statuses that the plain output leaves out, and the level from which on it has the server's log.
    unprinted: ClassVar[str] = ""
    log_level: ClassVar[str] = "error"

    def __init__(self, scenes: list[S], api: str, remark: str = "") -> None:
        """`api` is the path below which the demo calls the server, `remark` goes into the first line."""
        self.scenes = {scene.name: scene for scene in scenes}
        self._api = api
        self._remark = remark
        self._client: httpx.AsyncClient
        self._printed: dict[str, tuple[str, int]] = {}

    # -- the parts of each demo

    @abstractmethod
    async def begin(self, scene: S, url: str) -> None:
        """Creates the timer or call, which goes to `url`."""

    @abstractmethod
    async def cancel(self) -> None:
        """Cancels the scene that shows this."""

    @abstractmethod
    async def refresh(self) -> None:
        """Reads the status of each scene that is not over."""

    @abstractmethod
    async def conclude(self) -> str:
        """Prints the results. Returns what is wrong with them; empty if nothing is."""

    @abstractmethod
    def respond(self, scene: S, callback: ReceivedCallback) -> ReceiverResponse:
        """The receiver's response."""

    # -- the play

    async def play(self, folder: Path, *, plain: bool, keep: bool) -> None:
        """Runs all scenes, with the server's data in `folder`. Raises Refused if one fails or hangs."""
        # Warnings would break up the live table; errors are still logged.
        configure_logging(self.log_level if plain else "error", "console")
        receiver = Receiver(lambda callback: self.respond(self.scenes[callback.path[1:]], callback))
        await receiver.start("127.0.0.1", 0)
        try:
            async with _served(folder) as url, httpx.AsyncClient(base_url=url + self._api) as self._client:
                output.note(f"Server {url}, receiver {receiver.url},{self._remark} data in {folder}")
                with self._stage(plain) as show:
                    await asyncio.wait_for(self._act(receiver.url, show), PATIENCE_S)
                wrong = await self.conclude()
                if keep:
                    output.note(f"Still serving on {url}. Stop with Ctrl-C.")
                    await asyncio.Event().wait()
                if wrong:
                    raise Refused(wrong)
        except TimeoutError:
            late = ", ".join(scene.name for scene in self.scenes.values() if not self.over(scene))
            raise Refused(f"not finished after {PATIENCE_S:.0f} s: {late}") from None
        finally:
            await receiver.stop()

    def over(self, scene: S) -> bool:
        """Whether the scene has ended."""
        return scene.status not in self.unfinished

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """The decoded response. Raises Refused."""
        # The server has just started: it may not own all shards yet.
        while (response := await self._client.request(method, path, json=body)).status_code == 503:  # noqa: ASYNC110  (nothing to await)
            await asyncio.sleep(POLL_INTERVAL_S)
        if not response.is_success:
            raise Refused(f"{method} {response.url.path}: {response.status_code} {response.text}")
        return response.json() if response.content else {}

    async def _act(self, target: str, show: Callable[[], None]) -> None:
        for scene in self.scenes.values():
            await self.begin(scene, f"{target}/{scene.name}")
            show()
        cancel_at = time.monotonic() + CANCEL_AFTER_S
        while not all(map(self.over, self.scenes.values())):
            if cancel_at and time.monotonic() >= cancel_at:
                cancel_at = 0.0
                await self.cancel()
            await self.refresh()
            show()
            await asyncio.sleep(POLL_INTERVAL_S)

    # -- what is shown meanwhile

    @contextlib.contextmanager
    def _stage(self, plain: bool) -> Iterator[Callable[[], None]]:
        if plain:
            started = time.monotonic()
            yield lambda: self._print_changes(time.monotonic() - started)
            return
        with Live(self._table(), console=output.console(), auto_refresh=False) as live:
            yield lambda: live.update(self._table(), refresh=True)

    def _print_changes(self, elapsed_s: float) -> None:
        width = max(map(len, self.scenes)) + 1
        for scene in self.scenes.values():
            status, seen = self._printed.get(scene.name, ("", 0))
            clock = f"{elapsed_s:5.1f} s  {scene.name:<{width}}"
            if not status and scene.status:
                output.print_plain(f"{clock} {scene.shows}")
            for line in scene.seen[seen:]:
                output.print_plain(f"{clock} {line}")
            if scene.status not in (status, self.unprinted):
                output.print_plain(f"{clock} {scene.status}")
            self._printed[scene.name] = (scene.status, len(scene.seen))

    def _table(self) -> Table:
        first, last = self.headings
        state, due = Column("state", min_width=9), Column("due", min_width=5)
        table = output.plain_table(first, "demonstrates", state, due, last)
        for scene in self.scenes.values():
            shown = output.shown(scene.status, output.STATUS_STYLES.get(scene.status, ""))
            left = f"{max(0.0, parse_instant(scene.due) / 1e6 - time.time()):.1f} s" if scene.due else ""
            table.add_row(
                Text(scene.name, style="bold"), scene.shows, shown, left, output.shown("\n".join(scene.results()))
            )
        return table


@contextlib.asynccontextmanager
async def _served(folder: Path) -> AsyncIterator[str]:
    """A server on a free port with its data in `folder`, and its URL."""
    server = Server(load_settings({"host": "127.0.0.1", "port": 0, "data_dir": folder}))
    await server.start()
    try:
        yield server.url
    finally:
        await server.stop()

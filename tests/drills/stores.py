"""The stores of a drill: each makes a backup of a running one, destroys it, and restores it elsewhere."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path

from tests.support.cluster import node
from tests.support.mysql import MysqlServer
from tests.support.postgresql import PostgresServer
from tests.support.server import ServerProcess


class Store(ABC):
    """A store with its nodes. The commands are those of docs/how-to/backup.md."""

    #: How many nodes use it.
    nodes: int

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.backup_folder = folder / "backup"

    @abstractmethod
    async def start(self) -> list[ServerProcess]:
        """Makes an empty store; returns its nodes, not started."""

    @abstractmethod
    async def backup(self) -> str:
        """Makes a backup while the nodes run; returns with what."""

    @abstractmethod
    async def destroy(self) -> None:
        """Ends the database without warning and removes its files. The nodes have been killed."""

    @abstractmethod
    async def restore(self) -> list[ServerProcess]:
        """Restores the backup; returns the nodes to start on it."""

    @abstractmethod
    def remove(self) -> None:
        """Ends what still runs, and removes its files."""


async def run(*command: str) -> None:
    """Runs a command without blocking the traffic. Raises RuntimeError with what it printed, if it fails."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    printed, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {printed.decode(errors='replace')[-4000:]}")


class Sqlite(Store):
    """The two files of one node."""

    nodes = 1

    def _node(self, name: str) -> ServerProcess:
        return ServerProcess(self.folder / name)

    async def start(self) -> list[ServerProcess]:
        return [self._node("first")]

    async def backup(self) -> str:
        folder = str(self.folder / "first")
        await run(sys.executable, "-m", "tocsin", "backup", str(self.backup_folder), "--data-dir", folder)
        return "tocsin backup"

    async def destroy(self) -> None:
        shutil.rmtree(self.folder / "first")

    async def restore(self) -> list[ServerProcess]:
        folder = str(self.folder / "second")
        await run(sys.executable, "-m", "tocsin", "restore", str(self.backup_folder), "--data-dir", folder)
        return [self._node("second")]

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class OnServer(Store):
    """Two nodes on a database server that syncs every commit."""

    nodes = 2

    def _nodes(self, url: str) -> list[ServerProcess]:
        return [node(self.folder, name, url) for name in ("one", "two")]


class Postgresql(OnServer):
    """pg_basebackup: the files of the whole server, with the write-ahead log that makes them consistent."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._server = PostgresServer(fsync=True)
        self._url = ""

    async def start(self) -> list[ServerProcess]:
        self._server.init()
        self._server.start()
        self._url = await self._server.create_database()
        return self._nodes(self._url)

    def _program(self, name: str) -> list[str]:
        as_owner = ["unshare", "-U", "--map-user=1000", "--map-group=1000", "--"] if os.geteuid() == 0 else []
        return [*as_owner, str(self._server.programs / name)]

    async def backup(self) -> str:
        target = self._server.folder / "backup"
        await run(
            *self._program("pg_basebackup"), "--pgdata", str(target), "--checkpoint=fast", "--host=127.0.0.1",
            f"--port={self._server.port}", "--username=postgres",
        )  # fmt: skip
        await run(*self._program("pg_verifybackup"), "--quiet", str(target))
        return "pg_basebackup"

    async def destroy(self) -> None:
        self._server.kill()
        shutil.rmtree(self._server.folder / "data")

    async def restore(self) -> list[ServerProcess]:
        (self._server.folder / "backup").rename(self._server.folder / "data")
        self._server.start()
        return self._nodes(self._url)

    def remove(self) -> None:
        self._server.remove()
        shutil.rmtree(self.folder, ignore_errors=True)


class Mysql(OnServer):
    """mariadb-backup, or where it is not installed mysqldump into a new server."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._server = MysqlServer(fsync=True)
        self._physical = shutil.which("mariadb-backup")
        self._url = ""

    async def start(self) -> list[ServerProcess]:
        self._server.init()
        self._server.start()
        self._url = self._server.new_url()
        return self._nodes(self._url)

    def _login(self) -> list[str]:
        return ["--user=root", "--host=127.0.0.1", f"--port={self._server.port}", "--protocol=tcp"]

    async def backup(self) -> str:
        target = self.backup_folder
        if self._physical:
            await run(
                self._physical, "--no-defaults", "--backup", f"--target-dir={target}", *self._login(),
                f"--datadir={self._server.folder / 'data'}",
            )  # fmt: skip
            return "mariadb-backup"
        target.mkdir()
        dumped = ["--single-transaction", "--hex-blob", f"--result-file={target / 'tocsin.sql'}", "--databases"]
        await run("mysqldump", "--no-defaults", *self._login(), *dumped, self._url.rpartition("/")[2])
        return "mysqldump (mariadb-backup is not installed)"

    async def destroy(self) -> None:
        self._server.kill()
        shutil.rmtree(self._server.folder / "data")

    async def restore(self) -> list[ServerProcess]:
        if self._physical:
            await run(self._physical, "--no-defaults", "--prepare", f"--target-dir={self.backup_folder}")
            shutil.move(self.backup_folder, self._server.folder / "data")
            self._server.start()
        else:
            self._server.init()
            self._server.start()
            dump = self.backup_folder / "tocsin.sql"
            await run("mysql", "--no-defaults", *self._login(), f"--execute=source {dump}")
        return self._nodes(self._url)

    def remove(self) -> None:
        self._server.remove()
        shutil.rmtree(self.folder, ignore_errors=True)


STORES: dict[str, type[Store]] = {"sqlite": Sqlite, "postgresql": Postgresql, "mysql": Mysql}


def new_store(name: str) -> Store:
    """A store of that kind, in a temporary folder."""
    return STORES[name](Path(tempfile.mkdtemp(prefix="tocsin-drill-")))

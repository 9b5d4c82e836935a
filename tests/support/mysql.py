"""A real server that speaks MySQL's protocol, in a temporary folder, on a free port: MariaDB, or MySQL itself where
`TOCSIN_TEST_MYSQLD` names its program."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.needs import lacking
from tests.support.program import ServerProgram
from tocsin.sql.pool import ServerOptions
from tocsin.stores.mysql.connection import connect
from tocsin.stores.mysql.driver import Connection
from tocsin.stores.mysql.store import MysqlStore
from tocsin.stores.options import MysqlOptions

#: The path of MySQL's `mysqld`, on which all tests of the store in MySQL run then, instead of MariaDB.
MYSQLD_VARIABLE = "TOCSIN_TEST_MYSQLD"


class _Mariadb:
    """How MariaDB is installed and started, and what its tests may know of it."""

    #: Whether a statement that writes is ended, too, that takes too long.
    ends_writes = True
    #: What lets transactions do everything but commit, in the session that sends it; a backup does so.
    hold_commits = (b"BACKUP STAGE START", b"BACKUP STAGE BLOCK_COMMIT")

    def __init__(self) -> None:
        self.program = _program("mariadbd")
        self._installer = _program("mariadb-install-db")

    def install(self, data: Path, scratch: Path) -> list[str]:
        return [self._installer, "--no-defaults", f"--user={getpass.getuser()}", f"--datadir={data}",
                f"--tmpdir={scratch}", "--auth-root-authentication-method=normal",
                "--skip-test-db", "--skip-name-resolve"]  # fmt: skip

    def settings(self, *, fsync: bool) -> dict[str, str]:
        return {"innodb_log_file_size": "64M"} | ({} if fsync else {"innodb_flush_method": "nosync"})


class _Mysql:
    """The same of MySQL, which has a binary log, unless it is configured otherwise, and waits for the disk with it."""

    ends_writes = False
    hold_commits = (b"FLUSH TABLES WITH READ LOCK",)

    def __init__(self, program: str) -> None:
        self.program = program

    def install(self, data: Path, scratch: Path) -> list[str]:
        # Clients that come over TCP are not of `localhost`, since no address is looked up.
        users = scratch / "users.sql"
        users.write_text("CREATE USER root@'127.0.0.1';\nGRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n")
        return [self.program, "--no-defaults", "--initialize-insecure", f"--user={getpass.getuser()}",
                f"--datadir={data}", f"--tmpdir={scratch}", f"--init-file={users}"]  # fmt: skip

    def settings(self, *, fsync: bool) -> dict[str, str]:
        # Its second protocol would listen on a port that is always the same.
        fixed = {"loose_mysqlx": "OFF", "loose_innodb_redo_log_capacity": "64M", "performance_schema": "OFF"}
        return fixed | ({} if fsync else {"innodb_flush_method": "nosync", "skip_log_bin": ""})


class MysqlServer(ServerProgram):
    """One server with its data. Without `fsync` it doesn't wait for the disk, for tests that don't crash the machine;
    crashes of the server itself lose nothing either way. `settings` are further ones of my.cnf, empty those that have no
    value."""

    def __init__(self, *, fsync: bool = False, settings: dict[str, str] | None = None) -> None:
        mysqld = os.environ.get(MYSQLD_VARIABLE)
        self.kind = _Mysql(mysqld) if mysqld else _Mariadb()
        super().__init__("mysql")
        self._data = self.folder / "data"
        # Of its own: as it starts, a server removes what others of its kind left behind, or are using.
        self._scratch = self.folder / "tmp"
        self._settings = {
            "innodb_flush_log_at_trx_commit": "1",
            "innodb_buffer_pool_size": "64M",
            "max_connections": "200",
            "skip_name_resolve": "ON",
            **self.kind.settings(fsync=fsync),
            **(settings or {}),
        }

    def init(self) -> None:
        """Makes the system's tables; root may connect without a password."""
        self._scratch.mkdir(exist_ok=True)
        _run(self.kind.install(self._data, self._scratch))

    def command(self, port: int) -> list[str]:
        options = [f"--{name}={value}" if value else f"--{name}" for name, value in self._settings.items()]
        return [self.kind.program, "--no-defaults", f"--user={getpass.getuser()}", f"--datadir={self._data}",
                f"--tmpdir={self._scratch}", f"--port={port}", "--bind-address=127.0.0.1",
                f"--socket={self.folder / 'socket'}", *options]  # fmt: skip

    def url(self, database: str, parameters: str = "") -> str:
        """How to reach a database, whether it exists or not."""
        return f"mysql://root@127.0.0.1:{self.port}/{database}{parameters}"

    def new_url(self) -> str:
        """The URL of a database that doesn't exist yet."""
        return self.url(f"t{uuid.uuid4().hex}")


def _program(name: str) -> str:
    """Where it is; skips the test where it isn't."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/libexec")
    if found is None:
        lacking("mysql", f"{name} is not installed (Debian's mariadb-server has it)")
    return found


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout.decode()}{done.stderr.decode()}")


@asynccontextmanager
async def opened(
    url: str, options: ServerOptions | None = None, mysql: MysqlOptions | None = None
) -> AsyncIterator[MysqlStore]:
    store = MysqlStore(url, options, mysql)
    await store.open(4)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def session(url: str, *, database: bool = True) -> AsyncIterator[Connection]:
    """Somebody else's connection."""
    # It may stand still in the middle of a transaction for as long as a test likes.
    server = MysqlStore(url, mysql=MysqlOptions(idle_transaction_timeout_s=3_600))._server
    connection = await connect(server, database=database, bounded=False)
    try:
        yield connection
    finally:
        connection.terminate()

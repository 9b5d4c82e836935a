"""Runs the commands of a page.

It runs in namespaces of its own (network, mounts, processes), so that the page's commands need no change at all: ports 8080
and 9000 are free there whatever else runs on the machine, `db.internal` is a name, and all that was started ends with it.
Its process, and those of its commands, are forked from one that has imported all that they need.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.docs.blocks import ROOT, SHELLS, Block, blocks_of, missing_lines
from tests.docs.commands import preload
from tests.docs.machines import MACHINES, NOT_RUN, USUAL, Machine
from tests.docs.namespaces import enter_namespaces
from tests.docs.terminal import CommandFailed, Terminal
from tests.support import preloaded
from tests.support.cassandra import CassandraServer
from tests.support.dynamodb import DynamoServer
from tests.support.mongodb import MongoServer
from tests.support.mysql import MysqlServer
from tests.support.patience import PATIENCE_S
from tests.support.postgresql import PostgresServer

#: Commands that run until they are stopped, and their output when they are ready. A second one of the same kind on
#: a page takes the place of the first.
SERVERS = {
    r"make run|tocsin serve|tocsin dev": "serves on http",
    r"tocsin echo": "listening on",
    r"nats-server": "server is ready",
    r"\S*python3? examples/receiver\.py": "listening on",
    r"\S* ?python3? examples/notify\.py": "listening on",
    r"python3 examples/(consume|events)\.py": "listening on",
}
NAMES = ("db.internal", "tocsin.example")


_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([*preloaded.IMPORTED, __name__])


def in_namespaces(page: str) -> tuple[int, str]:
    """Runs the page in separate namespaces. Returns the exit code and the transcript."""
    with tempfile.NamedTemporaryFile(prefix="tocsin-docs-") as output:
        process = _FORKS.Process(target=_forked, args=(page, output.name))
        process.start()
        try:
            process.join()
        finally:
            process.kill()
        assert process.exitcode is not None
        return process.exitcode, Path(output.name).read_text(errors="replace")


def _forked(page: str, output: str) -> None:
    preloaded.prepare()
    # multiprocessing has put an empty file in its place.
    sys.stdin = os.fdopen(0, closefd=False)
    fd = os.open(output, os.O_WRONLY | os.O_APPEND)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(fd, stream.fileno())
        # Of effect in all commands of the page: their output comes when it is written.
        stream.reconfigure(write_through=True)
    os.chdir(ROOT)
    enter_namespaces()
    preloaded.fork_from_here()
    sys.exit(_inside(page))


def _inside(page: str) -> int:
    machine = MACHINES.get(page, USUAL)
    with tempfile.TemporaryDirectory(prefix="tocsin-docs-") as folder:
        _prepare_system(Path(folder))
        preload(Path(folder))
        try:
            Reader(page, machine, Path(folder)).read()
        except CommandFailed as failed:
            print(f"\n{page}: {failed}")
            return 1
    return 0


def _prepare_system(folder: Path) -> None:
    """Sets up loopback, the host names that pages use, and the folders of a distribution's packages."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {' '.join(NAMES)}\n")
    subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", "/var/lib"], check=True)


class Reader:
    """Types a page's blocks into a terminal in order, and opens further terminals for servers."""

    def __init__(self, page: str, machine: Machine, folder: Path) -> None:
        self._page = page
        self._machine = machine
        self._checkout = _checkout(folder)
        self._environment = self._environ(folder)
        self._servers: dict[str, Terminal] = {}
        self._own = self._terminal()

    def read(self) -> None:
        """Raises CommandFailed, with the output, if the page is wrong."""
        if self._machine.before:
            self._own.run(self._machine.before)
        for command in self._machine.running:
            self._serve(command, *_server_of(command))
        if self._machine.finds:
            self._own.run(self._machine.finds)
        shown = ""
        for block in blocks_of(self._page):
            if block.language in SHELLS:
                shown = "" if reason_not_to_run(self._page, block) else self._do(block)
                continue
            if not block.language:
                if shown:
                    self._compare(block, shown)
                continue
            if block.language == "sql":
                self._own.run(f"{self._machine.sql} <<'END_OF_SQL'\n{block.text}END_OF_SQL\n")
            elif block.language == "toml":
                self._own.run(f"tocsin config check --config <(cat <<'END_OF_FILE'\n{block.text}END_OF_FILE\n)\n")
            elif block.language == "json":
                json.loads(block.text)
            shown = ""

    def _compare(self, block: Block, shown: str) -> None:
        """Checks that shown output was printed by the previous block, or is printed by a server shortly after."""
        deadline = time.monotonic() + PATIENCE_S
        while missing := missing_lines(block.text, shown + "".join(s.printed for s in self._servers.values())):
            reading = [server.read_on() for server in self._servers.values()]
            if time.monotonic() > deadline or not any(reading):
                raise CommandFailed(f"line {block.line} shows what was not printed: {missing}\nbut:\n{shown}")

    def _do(self, block: Block) -> str:
        if any(text in block.text for text in self._machine.stopped_before):
            while self._servers:
                self._servers.popitem()[1].interrupt()
        kind, ready = _server_of(block.text)
        printed = self._serve(block.text, kind, ready) if kind else self._own.run(block.text)
        print(f"-- line {block.line}\n{block.text}{printed}", flush=True)
        return printed

    def _serve(self, text: str, kind: str, ready: str) -> str:
        if kind in self._servers:
            self._servers.pop(kind).interrupt()
        self._servers[kind] = self._terminal()
        return self._servers[kind].start(text, ready)

    def _terminal(self) -> Terminal:
        """A new terminal in the checkout. Unless the page does so, `tocsin` is put on the PATH."""
        terminal = Terminal(self._checkout, self._environment)
        if not self._machine.bare:
            terminal.run(". .venv/bin/activate\n")
        return terminal

    def _environ(self, folder: Path) -> dict[str, str]:
        # Without the flags and variables of the `make` that runs the tests.
        own = ("TOCSIN_", "VIRTUAL_ENV", "MAKE", "MFLAGS", "ARGS")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(own)}
        path = [part for part in clean["PATH"].split(":") if not part.endswith(".venv/bin")]
        found = {**clean, "HOME": str(folder), "COLUMNS": "120"}
        if self._machine.postgresql:
            found |= _postgresql()
            path.insert(0, found.pop("PROGRAMS"))
        if self._machine.mysql:
            _mysql(folder)
        if self._machine.dynamodb:
            found |= _dynamodb()
        if self._machine.cassandra:
            _cassandra()
        if self._machine.mongodb:
            _mongodb()
        return found | {"PATH": ":".join(path)}


def _checkout(folder: Path) -> Path:
    """A prepared checkout: setting one up takes a minute and network access."""
    checkout = folder / "tocsin"
    checkout.mkdir()
    for name in ("Makefile", "docs", "examples", "pyproject.toml", "requirements", "sdks", "src"):
        (checkout / name).symlink_to(ROOT / name)
    (checkout / ".venv").mkdir()
    (checkout / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    (checkout / ".venv" / ".base").touch()
    _built_pages(checkout / "web")
    return checkout


def _built_pages(web: Path) -> None:
    """Marks built pages as current, so that `make` does not require the tools that build them."""
    (web / "node_modules").mkdir(parents=True)
    for name in ("package-lock.json", ".npmrc", "node_modules/.package-lock.json"):
        (web / name).touch()
        os.utime(web / name, (0, 0))


def _postgresql() -> dict[str, str]:
    """Starts a PostgreSQL server on the default port; returns the connection variables."""
    server = PostgresServer()
    server.port = 5432
    server.init()
    server.start()
    return {"PGHOST": "127.0.0.1", "PGUSER": "postgres", "PROGRAMS": str(server.programs)}


def _mysql(home: Path) -> None:
    """Starts a MariaDB or MySQL server on the default port, and writes the clients' options file."""
    server = MysqlServer()
    server.port = 3306
    server.init()
    server.start()
    (home / ".my.cnf").write_text("[client]\nhost=127.0.0.1\nuser=root\n")


def _dynamodb() -> dict[str, str]:
    """Starts DynamoDB Local where the page has its endpoint; returns the patience that its first requests need on a busy
    machine."""
    server = DynamoServer()
    server.port = 8000
    server.start()
    return {"TOCSIN_DYNAMODB_REQUEST_TIMEOUT": "20s", "TOCSIN_DYNAMODB_PATIENCE": "25s"}


def _cassandra() -> None:
    """Starts Cassandra where the page has its address."""
    server = CassandraServer()
    server.configure(9042)
    server.port = 9042
    server.start()


def _mongodb() -> None:
    """Starts the stand-in for MongoDB on the default port."""
    server = MongoServer()
    server.port = 27017
    server.start()


def _server_of(text: str) -> tuple[str, str]:
    """The server with which the block ends, and its output when it is ready; empty if the block ends by itself."""
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip() and not line.startswith("#")]
    last = re.sub(r"^(?:[A-Z_]+=\S+ )+", "", lines[-1])
    if re.search(r"&\s*(#.*)?$", last):
        return "", ""
    return next(((kind, ready) for kind, ready in SERVERS.items() if re.match(kind, last)), ("", ""))


def reason_not_to_run(page: str, block: Block) -> str | None:
    """Why the block is not run; None if it is."""
    return next((why for word, why in NOT_RUN.get(page, {}).items() if word in block.text), None)

"""A real Cassandra server, or several that are one cluster, in a temporary folder, on free ports."""

from __future__ import annotations

import contextlib
import os
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.needs import java_of
from tests.support.ports import free_port
from tests.support.program import ServerProgram

_REPOSITORY = Path(__file__).parents[2]
_FILES = _REPOSITORY / "tests" / "cassandra_server"
#: Another release of the server, in a folder with its jars.
LIB_VARIABLE = "TOCSIN_TEST_CASSANDRA"
_START_TIMEOUT_S = 180


class CassandraServer(ServerProgram):
    """One node. `sync` is its `commitlog_sync`; `host` its loopback address, `seed` the address and storage port of another
    node, whose cluster it joins; `paxos` its `paxos_variant`. One that is `lasting` has the compiler and the
    room for writes that servers have outside of tests: it starts slower, and is faster after a minute."""

    end_timeout_s = 60.0

    def __init__(
        self, *, sync: str = "batch", host: str = "127.0.0.1", seed: str | None = None, storage_port: int | None = None,
        token: int = 0, heap: str = "256M", paxos: str = "v1", lasting: bool = False,
    ) -> None:  # fmt: skip
        self._java = _java()
        self._sync = sync
        self._seed = seed
        self._token = token
        self._heap = heap
        self._paxos = paxos
        self._lasting = lasting
        self._fixed_storage_port = storage_port
        self.host = host
        super().__init__("cassandra")

    def wait(self, port: int) -> None:
        """Returns when it accepts connections, some ten seconds after it began."""
        assert self.process is not None
        end = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                socket.create_connection((self.host, port), 1).close()
            except OSError:
                # It has no notification.
                time.sleep(0.1)
            else:
                return
        self.kill()
        raise RuntimeError("the server ended, or takes too long")

    def configure(self, port: int) -> None:
        """Writes its configuration with this port for clients."""
        storage_port = self._fixed_storage_port or free_port()
        extra = {"periodic": "commitlog_sync_period: 1000ms", "batch": "", "group": "commitlog_sync_group_window: 5ms"}
        conf = self.folder / "conf"
        conf.mkdir(exist_ok=True)
        text = (_FILES / "cassandra.yaml").read_text()
        values = {"host": self.host, "port": port, "storage_port": storage_port, "folder": self.folder,
                  "seed": self._seed or f"{self.host}:{storage_port}", "sync": self._sync,
                  "sync_extra": extra[self._sync], "paxos": self._paxos,
                  "memtables": "256MiB" if self._lasting else "64MiB",
                  "commitlog": "1GiB" if self._lasting else "64MiB"}  # fmt: skip
        (conf / "cassandra.yaml").write_text(text.format(**values))
        (conf / "logback.xml").write_text((_FILES / "logback.xml").read_text())
        self.storage_port = storage_port

    def command(self, port: int) -> list[str]:
        if port != self.port:
            self.configure(port)
        lib = library()
        agent = next(iter(lib.glob("jamm-*.jar")))
        # A node waits for what the others report; alone it need not.
        files = ["jvm", "alone" if self._seed is None else "together", *([] if self._lasting else ["brief"])]
        options = [option for name in files for option in (_FILES / f"{name}.txt").read_text().split()]
        properties = {"cassandra.config": f"file://{self.folder}/conf/cassandra.yaml", "cassandra.storagedir": self.folder,
                      "logback.configurationFile": f"file://{self.folder}/conf/logback.xml",
                      "cassandra.initial_token": self._token,
                      }  # fmt: skip
        return [self._java, f"-Xms{self._heap}", f"-Xmx{self._heap}", *options, f"-javaagent:{agent}",
                *(f"-D{name}={value}" for name, value in properties.items()),
                "-cp", f"{self.folder}/conf:{lib}/*", "org.apache.cassandra.service.CassandraDaemon"]  # fmt: skip

    def url(self, keyspace: str, port: int | None = None) -> str:
        """How to reach a keyspace, whether it exists or not; through another port where one stands for the server."""
        return f"cassandra://{self.host}:{port or self.port}/{keyspace}"

    def new_url(self) -> str:
        """The URL of a keyspace that doesn't exist yet."""
        return self.url(f"k{uuid.uuid4().hex}")


#: The keyspace in which tests that share a server have a scope each, because creating tables takes long.
SHARED_KEYSPACE = "tocsin_tests"


@contextlib.contextmanager
def cluster(
    hosts: Sequence[str] = ("127.0.0.1", "127.0.0.2", "127.0.0.3"),
    *,
    sync: str = "batch",
    heap: str = "256M",
    paxos: str = "v1",
    lasting: bool = False,
) -> Iterator[list[CassandraServer]]:
    """Nodes of one cluster on these addresses, running, each with an equal part of the tokens."""
    port, storage_port = free_port(), free_port()
    servers: list[CassandraServer] = []
    try:
        for number, host in enumerate(hosts):
            token = -(2**63) + (number + 1) * (2**64 // (len(hosts) + 1))
            server = CassandraServer(
                sync=sync,
                host=host,
                seed=f"{hosts[0]}:{storage_port}",
                storage_port=storage_port,
                token=token,
                heap=heap,
                paxos=paxos,
                lasting=lasting,
            )
            servers.append(server)
            # The driver reaches all nodes by one port.
            server.configure(port)
            server.port = port
            server.start()
        yield servers
    finally:
        for server in servers:
            server.remove()


def library() -> Path:
    """The folder of the server's jars."""
    named = os.environ.get(LIB_VARIABLE)
    return Path(named) if named else _REPOSITORY / "build" / "cassandra" / "lib"


def _java() -> str:
    """Where Java is."""
    # Another release is there already.
    return java_of("cassandra", "cassandra", library() if LIB_VARIABLE in os.environ else library().parent / ".ready")

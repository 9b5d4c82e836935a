"""The stores of golden data: how each is made, kept in one small file, and restored."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import subprocess
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import httpx
import pymongo
import pytest
from bson import json_util
from cassandra import ProtocolVersion
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.encoder import Encoder
from cassandra.query import dict_factory

from tests.golden.content import environment
from tests.support.cassandra import CassandraServer
from tests.support.command import command
from tests.support.dynamodb import DynamoServer
from tests.support.mongodb import MongoServer
from tests.support.mysql import MysqlServer
from tests.support.needs import lacking
from tests.support.patience import PATIENCE_S
from tests.support.postgresql import PostgresServer
from tests.support.program import ServerProgram
from tests.support.server import ServerProcess

SECRETS_KEY = "60" * 32
#: The kinds of records of stores with service calls.
OF_CALLS = frozenset({"tenant_label"})


class GoldenStore(ABC):
    """A store of which golden data are kept, in `file`."""

    file: str
    #: Whether service calls are in it; on other databases they have one of their own.
    agent = False
    #: The kinds of records that are never in it.
    without: frozenset[str] = frozenset()
    #: The fixture with the server of the database.
    fixture: str | None = None

    @abstractmethod
    async def new(self, server: ServerProgram | None, folder: Path) -> ServerProcess:
        """A server of Tocsin, not started, with an empty store."""

    @abstractmethod
    async def keep(self, server: ServerProgram | None, process: ServerProcess) -> bytes:
        """The file with what is in the store, which no server of Tocsin uses any more."""

    @abstractmethod
    async def restored(self, server: ServerProgram | None, kept: bytes, folder: Path) -> ServerProcess:
        """A server of Tocsin, not started, with a new store that has what was kept."""


class Sqlite(GoldenStore):
    """The data folder of a server that was stopped, with the key of its secrets."""

    file, agent = "sqlite.tar.gz", True
    # A single node needs no secret for others.
    without = frozenset({"secret"})

    async def new(self, server: ServerProgram | None, folder: Path) -> ServerProcess:
        return ServerProcess(folder / "data", env=environment(folder))

    async def keep(self, server: ServerProgram | None, process: ServerProcess) -> bytes:
        files = ("tocsin.db", "agent.db", "secrets.key")
        return packed({name: (process.data_dir / name).read_bytes() for name in files})

    async def restored(self, server: ServerProgram | None, kept: bytes, folder: Path) -> ServerProcess:
        unpack(kept, folder / "data")
        return await self.new(server, folder)


class Backup(Sqlite):
    """What `tocsin backup` has made of that, and the key, which is never in a backup."""

    file = "backup.tar.gz"

    async def keep(self, server: ServerProgram | None, process: ServerProcess) -> bytes:
        folder = process.data_dir.parent / "backup"
        code, _, error = await command("backup", str(folder), "--data-dir", str(process.data_dir))
        assert code == 0, error
        key = {"secrets.key": (process.data_dir / "secrets.key").read_bytes()}
        return packed({path.name: path.read_bytes() for path in sorted(folder.iterdir())} | key)

    async def restored(self, server: ServerProgram | None, kept: bytes, folder: Path) -> ServerProcess:
        backup, data = folder / "backup", folder / "data"
        unpack(kept, backup)
        code, _, error = await command("restore", str(backup), "--data-dir", str(data))
        assert code == 0, error
        (backup / "secrets.key").rename(data / "secrets.key")
        return await self.new(server, folder)


class OnServer(GoldenStore):
    """A store on a database server. Its secrets are encrypted with a key that is known."""

    def _process(self, url: str, folder: Path) -> ServerProcess:
        flags = () if self.agent else ("--no-agent",)
        env = environment(folder) | {"TOCSIN_SECRETS_KEY": SECRETS_KEY, "TOCSIN_STORE": url}
        return ServerProcess(folder / "data", *flags, env=env)


class Postgresql(OnServer):
    """`pg_dump`, as statements that any client can send."""

    file, agent, fixture = "postgresql.sql.gz", True, "shared_postgresql"

    async def new(self, server: ServerProgram | None, folder: Path) -> ServerProcess:
        assert isinstance(server, PostgresServer)
        return self._process(await server.create_database(), folder)

    async def keep(self, server: ServerProgram | None, process: ServerProcess) -> bytes:
        assert isinstance(server, PostgresServer)
        dumped = run(
            server.programs / "pg_dump", "--inserts", "--no-owner", "--no-privileges", process.env["TOCSIN_STORE"]
        )
        # Commands of psql, and a setting that servers before 17 do not know.
        lines = [line for line in dumped.splitlines() if not re.match(r"\\|--|$|SET transaction_timeout", line)]
        return gzip.compress("\n".join(lines).encode(), mtime=0)

    async def restored(self, server: ServerProgram | None, kept: bytes, folder: Path) -> ServerProcess:
        process = await self.new(server, folder)
        connection = await asyncpg.connect(process.env["TOCSIN_STORE"])
        try:
            await connection.execute(gzip.decompress(kept).decode())
        finally:
            await connection.close()
        return process


class Mysql(OnServer):
    """A dump, of which MariaDB and MySQL have programs with names of their own."""

    without = OF_CALLS
    file, fixture = "mysql.sql.gz", "shared_mysql"

    async def new(self, server: ServerProgram | None, folder: Path) -> ServerProcess:
        assert isinstance(server, MysqlServer)
        return self._process(server.new_url(), folder)

    async def keep(self, server: ServerProgram | None, process: ServerProcess) -> bytes:
        assert isinstance(server, MysqlServer)
        options = ("--single-transaction", "--hex-blob", "--skip-comments", "--skip-dump-date")
        database = process.env["TOCSIN_STORE"].rpartition("/")[2]
        program = client("mariadb-dump", "mysqldump")
        return gzip.compress(run(program, *self._login(server), *options, database).encode(), mtime=0)

    async def restored(self, server: ServerProgram | None, kept: bytes, folder: Path) -> ServerProcess:
        assert isinstance(server, MysqlServer)
        process = await self.new(server, folder)
        database = process.env["TOCSIN_STORE"].rpartition("/")[2]
        login = client("mariadb", "mysql"), *self._login(server)
        run(*login, f"--execute=CREATE DATABASE {database}")
        run(*login, database, stdin=gzip.decompress(kept))
        return process

    @staticmethod
    def _login(server: MysqlServer) -> tuple[str, ...]:
        return "--no-defaults", "--user=root", "--host=127.0.0.1", f"--port={server.port}", "--protocol=tcp"


class Dynamodb(OnServer):
    """The table and its items in the service's own JSON, of DynamoDB Local."""

    without = OF_CALLS
    file, fixture = "dynamodb-local.json.gz", "shared_dynamodb"

    async def new(self, server: ServerProgram | None, folder: Path) -> ServerProcess:
        assert isinstance(server, DynamoServer)
        return self._process(server.new_url(), folder)

    async def keep(self, server: ServerProgram | None, process: ServerProcess) -> bytes:
        assert isinstance(server, DynamoServer)
        name = {"TableName": urlsplit(process.env["TOCSIN_STORE"]).netloc}
        table = self._request(server, "DescribeTable", name)["Table"]
        found = self._request(server, "Scan", name | {"ConsistentRead": True})
        assert "LastEvaluatedKey" not in found
        definition = {part: table[part] for part in ("KeySchema", "AttributeDefinitions")} | {
            "LocalSecondaryIndexes": [
                {part: index[part] for part in ("IndexName", "KeySchema", "Projection")}
                for index in table["LocalSecondaryIndexes"]
            ]
        }
        return gzip.compress(json.dumps({"table": definition, "items": found["Items"]}).encode(), mtime=0)

    async def restored(self, server: ServerProgram | None, kept: bytes, folder: Path) -> ServerProcess:
        assert isinstance(server, DynamoServer)
        process = await self.new(server, folder)
        name, content = {"TableName": urlsplit(process.env["TOCSIN_STORE"]).netloc}, json.loads(gzip.decompress(kept))
        self._request(server, "CreateTable", name | content["table"] | {"BillingMode": "PAY_PER_REQUEST"})
        for item in content["items"]:
            self._request(server, "PutItem", name | {"Item": item})
        return process

    @staticmethod
    def _request(server: DynamoServer, operation: str, content: dict[str, Any]) -> dict[str, Any]:
        """What it answers. It wants a signature, and does not check it."""
        signed = (
            "AWS4-HMAC-SHA256 Credential=test/20260101/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0"
        )
        answer = httpx.post(
            f"http://127.0.0.1:{server.port}",
            headers={"x-amz-target": f"DynamoDB_20120810.{operation}", "authorization": signed},
            content=json.dumps(content),
            timeout=PATIENCE_S,
        )
        assert answer.is_success, answer.text
        return dict(answer.json())


class Mongodb(OnServer):
    """Collections with their options, indexes and documents in MongoDB's extended JSON, of the stand-in."""

    without = OF_CALLS
    file, fixture = "mongodb-stand-in.json.gz", "shared_mongodb"

    async def new(self, server: ServerProgram | None, folder: Path) -> ServerProcess:
        assert isinstance(server, MongoServer)
        return self._process(server.new_url(), folder)

    async def keep(self, server: ServerProgram | None, process: ServerProcess) -> bytes:
        with self._database(process) as database:
            collections = [
                {
                    "name": each["name"],
                    "options": each["options"],
                    "indexes": list(database[each["name"]].list_indexes()),
                    "documents": list(database[each["name"]].find()),
                }
                for each in database.list_collections()
            ]
        return gzip.compress(
            json_util.dumps(collections, json_options=json_util.CANONICAL_JSON_OPTIONS).encode(), mtime=0
        )

    async def restored(self, server: ServerProgram | None, kept: bytes, folder: Path) -> ServerProcess:
        process = await self.new(server, folder)
        with self._database(process) as database:
            for each in json_util.loads(gzip.decompress(kept)):
                collection = database.create_collection(each["name"], **each["options"])
                for index in each["indexes"]:
                    if index["name"] != "_id_":
                        database.command("createIndexes", each["name"], indexes=[index])
                if each["documents"]:
                    collection.insert_many(each["documents"])
        return process

    @staticmethod
    @contextmanager
    def _database(process: ServerProcess) -> Iterator[Any]:
        with pymongo.MongoClient[dict[str, Any]](process.env["TOCSIN_STORE"]) as client:
            yield client.get_default_database()


class Cassandra(OnServer):
    """The table and its rows, as statements that any client can send. What expires does so no more."""

    without = OF_CALLS
    file, fixture = "cassandra.cql.gz", "shared_cassandra"

    async def new(self, server: ServerProgram | None, folder: Path) -> ServerProcess:
        assert isinstance(server, CassandraServer)
        return self._process(server.new_url(), folder)

    async def keep(self, server: ServerProgram | None, process: ServerProcess) -> bytes:
        keyspace = urlsplit(process.env["TOCSIN_STORE"]).path[1:]
        with self._session(server) as session:
            session.set_keyspace(keyspace)
            (table,) = session.execute("DESCRIBE TABLE tocsin")
            # Options that other releases of Cassandra do not know.
            definition = table["create_statement"].partition("\n    AND ")[0].replace(f"{keyspace}.", "")
            statements = [" ".join(definition.split())]
            literal = Encoder().cql_encode_all_types
            for row in session.execute("SELECT * FROM tocsin"):
                values = {name: literal(value) for name, value in row.items() if value is not None}
                statements.append(f"INSERT INTO tocsin ({', '.join(values)}) VALUES ({', '.join(values.values())})")
        return gzip.compress(";\n".join(statements).encode(), mtime=0)

    async def restored(self, server: ServerProgram | None, kept: bytes, folder: Path) -> ServerProcess:
        process = await self.new(server, folder)
        keyspace = urlsplit(process.env["TOCSIN_STORE"]).path[1:]
        with self._session(server) as session:
            replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
            session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {replication}")
            session.set_keyspace(keyspace)
            for statement in gzip.decompress(kept).decode().split(";\n"):
                session.execute(statement)
        return process

    @staticmethod
    @contextmanager
    def _session(server: ServerProgram | None) -> Iterator[Any]:
        assert isinstance(server, CassandraServer)
        profile = ExecutionProfile(row_factory=dict_factory, request_timeout=PATIENCE_S)
        profiles = {EXEC_PROFILE_DEFAULT: profile}
        cluster = Cluster(
            [server.host], port=server.port, protocol_version=ProtocolVersion.V4, execution_profiles=profiles
        )
        try:
            yield cluster.connect()
        finally:
            cluster.shutdown()


STORES: dict[str, GoldenStore] = {
    "sqlite": Sqlite(),
    "backup": Backup(),
    "postgresql": Postgresql(),
    "mysql": Mysql(),
    "dynamodb": Dynamodb(),
    "mongodb": Mongodb(),
    "cassandra": Cassandra(),
}


def packed(files: dict[str, bytes]) -> bytes:
    """An archive of the files."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o600
            tar.addfile(member, io.BytesIO(content))
    return archive.getvalue()


def unpack(archive: bytes, folder: Path) -> None:
    """Puts the files of an archive into a folder, readable by this user only."""
    folder.mkdir(mode=0o700)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")


def client(*names: str) -> str:
    """The first of these programs that there is; skips the test where there is none."""
    found = next(filter(None, map(shutil.which, names)), None)
    return found or lacking("mysql", f"there is no {' or '.join(names)} (Debian's mariadb-client has them)")


def run(*words: object, stdin: bytes = b"") -> str:
    """What a program prints. Fails with what it reports."""
    done = subprocess.run([str(word) for word in words], input=stdin, capture_output=True, check=False)
    if done.returncode:
        pytest.fail(f"{words[0]} failed: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode()

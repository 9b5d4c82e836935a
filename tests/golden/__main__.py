"""Makes golden data again: `.venv/bin/python -m tests.golden`, or only some of them: `… sqlite postgresql`.

They are those of the present code, in the folder of its minor release. Once that is out, they stay as they are.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, chdir
from pathlib import Path

from tests.golden.content import fill, reads
from tests.golden.kept import DATA, VERSION, Kept, add_statistics
from tests.golden.stores import STORES
from tests.support.cassandra import CassandraServer
from tests.support.dynamodb import DynamoServer
from tests.support.mongodb import MongoServer
from tests.support.mysql import MysqlServer
from tests.support.postgresql import PostgresServer
from tests.support.program import ServerProgram, running
from tocsin.ports.store import FORMAT

_SERVERS: dict[str, Callable[[], ServerProgram]] = {
    "postgresql": PostgresServer,
    "mysql": MysqlServer,
    "dynamodb": DynamoServer,
    "mongodb": MongoServer,
    "cassandra": CassandraServer,
}


async def make(name: str, server: ServerProgram | None, folder: Path) -> None:
    """Makes the golden data of one store. Raises AssertionError if a request is refused."""
    store = STORES[name]
    process = await store.new(server, folder)
    await process.start()
    await fill(process, agent=store.agent)
    answers = await reads(process, agent=store.agent)
    assert await process.stop() == 0, process.log()
    await add_statistics(process)
    kept = Kept(FORMAT, answers)
    (DATA / VERSION).mkdir(parents=True, exist_ok=True)
    (DATA / VERSION / store.file).write_bytes(await store.keep(server, process))
    kept.write(DATA / VERSION / f"{name}.json")
    print(f"{name}: {(DATA / VERSION / store.file).stat().st_size / 1000:.0f} KB", flush=True)


def main(names: list[str]) -> None:
    """Makes those that are named, or all."""
    for name in names or STORES:
        with ExitStack() as stack:
            server = stack.enter_context(running(_SERVERS[name]())) if name in _SERVERS else None
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tocsin-golden-")))
            stack.enter_context(chdir(folder))
            asyncio.run(make(name, server, folder))


main(sys.argv[1:])

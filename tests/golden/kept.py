"""Golden data as they are kept: by release, a file of each store, and beside it what clients were answered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.support.server import ServerProcess
from tocsin import __version__
from tocsin.administration import every
from tocsin.ports.store import Store
from tocsin.server.stores import open_store
from tocsin.settings import load_settings
from tocsin.statistics.limits import StatisticsLimits
from tocsin.statistics.outages import Outage
from tocsin.statistics.records import MINUTES, merge, put_outage

DATA = Path(__file__).parent / "releases"
#: The minor release whose data the present code makes.
VERSION = ".".join(__version__.split(".")[:2])
SHARDS = 4
#: What depends on the moment of an answer, and not only on what is stored.
_MOMENTARY = frozenset({"lastUsedAt", "previousSecretUntil", "series", "inFlight", "waiting"})


@dataclass(frozen=True)
class Kept:
    """What is known of the data of one store: FORMAT of the code that made them, and the answers of `reads`."""

    format: int
    answers: dict[str, Any]

    def write(self, path: Path) -> None:
        """Writes it as a file that can be reviewed."""
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> Kept:
        """What `write` has written."""
        return cls(**json.loads(path.read_text()))


def differences(kept: Any, found: Any, place: str = "") -> list[str]:
    """Where an answer lacks what was kept, or has another value. It may have more: later releases add fields."""
    if isinstance(kept, dict) and isinstance(found, dict):
        return [
            line
            for name, value in kept.items()
            if name not in _MOMENTARY
            for line in differences(value, found.get(name, "(missing)"), f"{place}.{name}")
        ]
    if isinstance(kept, list) and isinstance(found, list) and len(kept) == len(found):
        pairs = enumerate(zip(kept, found, strict=True))
        return [line for number, pair in pairs for line in differences(*pair, f"{place}[{number}]")]
    return [] if kept == found else [f"{place}: {kept!r} was kept, {found!r} is answered"]


@asynccontextmanager
async def opened(process: ServerProcess) -> AsyncIterator[Store]:
    """The store of a server that does not run."""
    flags: dict[str, Any] = {"data_dir": process.data_dir}
    if "TOCSIN_STORE" in process.env:
        flags["store"] = process.env["TOCSIN_STORE"]
    store = open_store(load_settings(flags))
    try:
        assert await store.open(SHARDS) == SHARDS
        yield store
    finally:
        await store.close()


async def add_statistics(process: ServerProcess) -> None:
    """Adds what a server writes only after a day, or when its store was away: ten-minute slots, and an outage."""
    limits = StatisticsLimits()
    async with opened(process) as store:
        minutes = [record async for record in every(store, MINUTES)]
        assert await merge(store, "", 2**62, limits, lambda event: None)
        for minute in minutes:
            assert await store.put_record(MINUTES, minute.key, minute.value, None)
        await put_outage(store, bytes(16), Outage("golden", "store", 1, 2))

"""Drains an outbox as a program of its own: python -m tocsin_client.outbox --help"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any
from urllib.parse import unquote, urlsplit

from tocsin_client import Client
from tocsin_client._core.outbox import TABLE
from tocsin_client._error_bases import ApiError, InvalidArgument, TransportError
from tocsin_client._sync.outbox import Drain
from tocsin_client._sync.stopping import Stop
from tocsin_client.receiver._databases import DbApi


def main() -> int:
    """Returns the exit code: with --once 1 if the server could not be asked."""
    parser = argparse.ArgumentParser(
        prog="python -m tocsin_client.outbox",
        description="Create the timers of an outbox whose transactions are committed, until SIGTERM or SIGINT.",
        epilog="TOCSIN_URL is the server's URL if there is no --server, TOCSIN_KEY the API key. DATABASE_URL is the "
        "database if there is no --database: postgresql://… needs psycopg or psycopg2, mysql://… PyMySQL.",
    )
    parser.add_argument("--server", default=os.environ.get("TOCSIN_URL", "http://127.0.0.1:8080"), metavar="URL")
    parser.add_argument("--database", default=os.environ.get("DATABASE_URL"), metavar="URL", help="sqlite:///orders.db")
    parser.add_argument("--table", default=TABLE, metavar="NAME", help=f"default {TABLE}")
    parser.add_argument(
        "--every", default="500ms", metavar="DURATION", help="how often to look for rows; default 500ms"
    )
    parser.add_argument("--create-table", action="store_true", help="create the table first if it isn't there")
    parser.add_argument("--once", action="store_true", help="end when no row is due")
    given = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    stop = Stop()
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, lambda *_: stop.set())
    try:
        with Client(given.server, key=os.environ.get("TOCSIN_KEY")) as client:
            drain = Drain(client, DbApi(connector(given.database)), table=given.table)
            if given.create_table:
                drain.create_table()
            if given.once:
                return _drain_once(drain, stop)
            logging.info("draining %s to %s", given.table, given.server)
            drain.run(stop, every=given.every)
            return 0
    except (InvalidArgument, ImportError) as wrong:
        print(wrong, file=sys.stderr)
        return 2


def _drain_once(drain: Drain[Any], stop: Stop) -> int:
    created = dead = 0
    failed: ApiError | TransportError | None = None
    while not stop.is_set() and failed is None:
        drained = drain.once()
        created, dead, failed = created + drained.created, dead + drained.dead, drained.unavailable
        if not drained.found:
            break
    print(f"{created} created, {dead} dead{'' if failed is None else f', then: {failed}'}")
    return 0 if failed is None else 1


def connector(url: str | None) -> Callable[[], Any]:
    """What opens connections to the database. InvalidArgument: the URL names none. ImportError: its driver is missing."""
    parts = urlsplit(url or "")
    scheme = parts.scheme.partition("+")[0]
    if scheme == "sqlite" and len(parts.path) > 1:
        import sqlite3

        path = unquote(parts.path[1:])
        return lambda: sqlite3.connect(path, timeout=30)
    if scheme in ("postgresql", "postgres"):
        driver = _driver("psycopg", "psycopg2")
        return lambda: driver.connect("postgresql:" + (url or "").partition(":")[2])
    if scheme in ("mysql", "mariadb"):
        driver = _driver("pymysql")
        options: dict[str, Any] = {
            "host": parts.hostname or "127.0.0.1", "port": parts.port or 3306, "user": unquote(parts.username or "root"),
            "password": unquote(parts.password or ""), "database": unquote(parts.path[1:]), "charset": "utf8mb4",
        }  # fmt: skip
        return lambda: driver.connect(**options)
    raise InvalidArgument(
        f"database: {scheme or 'nothing'} is not known; give postgresql://…, mysql://… or sqlite:///file with --database "
        "or in DATABASE_URL"
    )


def _driver(*names: str) -> Any:
    for name in names:
        try:
            return import_module(name)
        except ModuleNotFoundError as missing:
            if missing.name != name:
                raise
    raise ImportError(f"{names[0]} is not installed: pip install {names[0]}")


if __name__ == "__main__":
    sys.exit(main())

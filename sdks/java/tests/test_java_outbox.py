"""The outbox in transactions of JDBC, in PostgreSQL, MySQL and SQLite, and the program of the guide with Spring."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from pathlib import Path

import pymysql
import pytest
from test_java_docs import JAVA, JVM, ROOT, jars, run, server
from tests.support.mysql import MysqlServer
from tests.support.postgresql import PostgresServer

# Building takes a while on a slow machine.
pytestmark = pytest.mark.timeout(300)

__all__ = ["jars", "server"]

GUIDE = (ROOT / "docs/how-to/outbox.md").read_text()
PROGRAMS = dict(re.findall(r"^```java\n// (\S+\.java)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL))


@pytest.fixture(scope="module")
def classpath(jars, server, tmp_path_factory):
    """The guide's program, with the server's address, and that of the databases, compiled."""
    assert GUIDE.count("```java\n") == len(PROGRAMS) == 1
    sources, classes = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("classes")
    for name, text in PROGRAMS.items():
        (sources / Path(name).name).write_text(text.replace("http://127.0.0.1:8080", server.url))
    path = os.pathsep.join([str(classes), *map(str, jars.values()), f"{JAVA}/driver/target/lib/*"])
    programs = [*sources.glob("*.java"), JAVA / "tests/programs/OutboxDatabases.java"]
    run(sources, "javac", "-Xlint:all", "-Werror", "-cp", path, "-d", str(classes), *map(str, programs))
    return path


@pytest.fixture
def database(request, tmp_path):
    """The URL of an empty one."""
    if request.param == "sqlite":
        yield f"jdbc:sqlite:{tmp_path / 'app.db'}?busy_timeout=30000"
        return
    running = PostgresServer() if request.param == "postgresql" else MysqlServer()
    running.init()
    running.start()
    try:
        if request.param == "postgresql":
            yield f"jdbc:postgresql://127.0.0.1:{running.port}/postgres?user=postgres"
        else:
            with pymysql.connect(host="127.0.0.1", port=running.port, user="root") as connection:
                connection.cursor().execute("CREATE DATABASE app")
            yield f"jdbc:mariadb://127.0.0.1:{running.port}/app?user=root"
    finally:
        running.remove()


@pytest.mark.parametrize("database", ["sqlite", "postgresql", "mysql"], indirect=True)
def test_transactions_of_the_program(tmp_path, classpath, server, database, request):
    name = request.node.callspec.params["database"]
    with server.client() as client:
        client.namespaces.create(name)
    assert run(tmp_path, *JVM, classpath, "OutboxDatabases", server.url, database, name) == "drained\n"


def test_spring(tmp_path, classpath, server):
    with server.client() as client:
        client.namespaces.create("shop")
        assert run(tmp_path, *JVM, classpath, "Shop").splitlines() == [
            "order 1", "unicorn out of stock", "1 created",
        ]  # fmt: skip
        assert [timer.payload for timer in client.timers.list("shop")] == [{"order": 1}]
    with contextlib.closing(sqlite3.connect(tmp_path / "shop.db")) as found:
        assert found.execute("SELECT item FROM java_orders").fetchall() == [("tea",)]

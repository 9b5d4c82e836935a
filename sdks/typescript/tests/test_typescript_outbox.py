"""The outbox in transactions of pg and mysql2, and the program of the guide, with the installed package and real servers.
SQLite is what the scenarios use."""

from __future__ import annotations

import re
import shutil
import urllib.error
import urllib.request

import psycopg
import pymysql
import pytest
from test_typescript_docs import namespace, serving
from tests.support.mysql import MysqlServer
from tests.support.patience import PATIENCE_S
from tests.support.postgresql import PostgresServer
from typescript_tools import ROOT, SDK, run

pytestmark = pytest.mark.timeout(300)

GUIDE = (ROOT / "docs/how-to/outbox.md").read_text()
PROGRAMS = dict(re.findall(r"^```js\n// ([\w.-]+\.mjs)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL))


@pytest.fixture(scope="module")
def postgresql():
    server = PostgresServer()
    server.init()
    server.start()
    yield server.url()
    server.remove()


@pytest.fixture(scope="module")
def mysql():
    server = MysqlServer()
    server.init()
    server.start()
    with pymysql.connect(host="127.0.0.1", port=server.port, user="root") as connection:
        connection.cursor().execute("CREATE DATABASE app")
    yield server.url("app")
    server.remove()


@pytest.mark.parametrize(("kind", "database"), [("pg", "postgresql"), ("mysql2", "mysql")])
def test_transactions_of_the_program(project, server, request, kind, database):
    shutil.copy(SDK / "tests/outbox-databases.mjs", project)
    with server.client() as client:
        name = namespace(client, f"outbox-{kind}")
    url = request.getfixturevalue(database)
    done = run("node", "outbox-databases.mjs", kind, cwd=project, SERVER=server.url, DATABASE_URL=url, NAMESPACE=name)
    assert done == "drained\n"


def test_the_program_of_the_guide(project, server, postgresql):
    ((name, text),) = PROGRAMS.items()
    assert GUIDE.count("```js\n") == 1
    (project / name).write_text(text.replace("http://127.0.0.1:8080", server.url))
    stem = name.removesuffix(".mjs")
    with serving(project, stem, DATABASE_URL=postgresql) as (url, _), server.client() as client:
        namespace(client, "shop")
        with urllib.request.urlopen(
            urllib.request.Request(f"{url}/orders/tea", method="POST"), timeout=PATIENCE_S
        ) as ok:
            assert ok.read() == b"order 1\n"
        with pytest.raises(urllib.error.HTTPError, match="500"):
            urllib.request.urlopen(urllib.request.Request(f"{url}/orders/unicorn", method="POST"), timeout=PATIENCE_S)
        waiting = "SELECT count(*) FROM tocsin_outbox WHERE dead_reason IS NULL"
        with psycopg.connect(postgresql, autocommit=True) as database:
            while database.execute(waiting).fetchone() != (0,):
                pass
            assert database.execute("SELECT item FROM shop_orders").fetchall() == [("tea",)]
        assert [timer.id for timer in client.timers.list("shop")] == ["remind-1"]

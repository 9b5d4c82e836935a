"""The Python programs of the guide to the outbox run as printed, with a real server; only addresses differ."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import urllib.error
import urllib.request

import pytest
from tests.support.patience import PATIENCE_S

from test_docs import PAGE, namespace, run, serving
from test_outbox import postgresql, wait_until
from tocsin_client._core.outbox import OutboxTable
from tocsin_client.errors import NamespaceExists

__all__ = ["postgresql"]

GUIDE = (PAGE.parents[1] / "how-to/outbox.md").read_text()
PROGRAMS = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL))


@pytest.fixture
def folder(tmp_path, server):
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text.replace("http://127.0.0.1:8080", server.url))
    return tmp_path


def test_every_program_is_run():
    assert set(PROGRAMS) == {"sqlalchemy_orders.py", "django_shop.py"}
    assert len(re.findall("^```python$", GUIDE, re.MULTILINE)) == len(PROGRAMS)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_sqlalchemy(folder, server, request, database, monkeypatch):
    if database == "postgresql":
        url = request.getfixturevalue("postgresql")
        monkeypatch.setenv("DATABASE_URL", url.replace("postgresql:", "postgresql+psycopg:"))
    with server.client() as client:
        with contextlib.suppress(NamespaceExists):
            namespace(client, "orders")
        assert run(folder, "sqlalchemy_orders.py").splitlines() == ["unicorn out of stock", "1 created"]
        assert [timer.payload for timer in client.timers.list("orders")] == [{"order": 1}]


def test_django(folder, server):
    command = ("django_shop.py", "runserver", "--noreload")
    with serving(folder, "django_shop", command) as (url, _), server.client() as client:
        namespace(client, "shop")
        assert urllib.request.urlopen(f"{url}/orders/tea", timeout=PATIENCE_S).read() == b"order 1\n"
        with pytest.raises(urllib.error.HTTPError, match="500"):
            urllib.request.urlopen(f"{url}/orders/unicorn", timeout=PATIENCE_S)
        wait_until(lambda: [timer.id for timer in client.timers.list("shop")] == ["remind-1"])
    with sqlite3.connect(folder / "shop.db") as database:
        assert database.execute("SELECT count(*) FROM shop_order").fetchone() == (1,)


def test_the_table_is_that_of_the_libraries():
    """As printed, without the comments."""
    printed = re.search(r"^```sql\n(CREATE TABLE .*?);\n```$", GUIDE, re.MULTILINE | re.DOTALL)[1]
    columns = re.sub(r"\s+", " ", re.sub(r" *--.*", "", printed)).replace("( ", "(").replace(" )", ")")
    assert columns.replace("TABLE", "TABLE IF NOT EXISTS") == OutboxTable().create("sqlite")

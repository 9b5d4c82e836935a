"""The programs of `docs/sdks/python.md` run as they are printed, each with a real server; only ports differ."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import psycopg
import pytest
import urllib3
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port, wait_for_port
from tests.support.postgresql import PostgresServer

from proxy import Proxy
from tocsin_client.testing import TestServer, firing, sign

PAGE = Path(__file__).parents[3] / "docs/sdks/python.md"
PROGRAMS = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
SERVED = {
    "fastapi_app": ("-m", "uvicorn", "fastapi_app:app", "--port"),
    "flask_app": ("-m", "flask", "--app", "flask_app", "run", "--port"),
    "django_app": ("django_app.py", "runserver", "--noreload"),
    "echo": ("-m", "tocsin", "echo", "--port"),
    "billing": ("-m", "uvicorn", "billing:app", "--port"),
    "django_orders": ("django_orders.py", "runserver", "--noreload"),
    "flask_orders": ("-m", "flask", "--app", "flask_orders", "run", "--port"),
    "async_orders": ("-m", "uvicorn", "async_orders:app", "--port"),
    "asyncpg_orders": ("-m", "uvicorn", "asyncpg_orders:app", "--port"),
    "psycopg_orders": ("-m", "uvicorn", "psycopg_orders:app", "--port"),
}


@pytest.fixture
def folder(tmp_path, server):
    """The programs, with the server's address in place of the page's."""
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text.replace("http://127.0.0.1:8080", server.url))
    return tmp_path


def run(folder, *command):
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ran = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, env=environment, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@contextlib.contextmanager
def serving(folder, name, command=None):
    """The program as a server on a free port, by the usual command for it; yields its URL and the file with its output."""
    port = free_port()
    output = folder / "output"
    environment = {**os.environ, "TOCSIN_SECRET": SECRET, "PYTHONUNBUFFERED": "1"}
    with output.open("w") as log:
        started = [sys.executable, *(command or SERVED[name]), str(port)]
        process = subprocess.Popen(started, cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            wait_for_port(port, process)
            yield f"http://127.0.0.1:{port}", output
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


def namespace(client, name):
    client.namespaces.create(name, secret=SECRET)
    return name


def test_the_first_program_is_short():
    assert len(PROGRAMS["first_timer.py"].strip().splitlines()) < 10


def test_every_program_is_run():
    assert {f"{name}.py" for name in SERVED if name != "echo"} <= set(PROGRAMS)
    assert len(re.findall("^```python$", PAGE.read_text(), re.MULTILINE)) == len(PROGRAMS)


def test_first_timer(folder):
    with serving(folder, "echo") as (url, output):
        program = folder / "first_timer.py"
        program.write_text(program.read_text().replace("http://127.0.0.1:9000", url).replace('"5s"', '"10ms"'))
        first, second = run(folder, "first_timer.py").splitlines()
        assert first.startswith("tea pending 20") and second == "completed"
        assert '{"cups":2}' in output.read_text()


@pytest.mark.parametrize("name", ["fastapi_app", "flask_app", "django_app"])
def test_receivers(folder, server, name):
    with serving(folder, name) as (url, output), server.client() as client:
        orders = namespace(client, name)
        hook = f"{url}/hooks/remind"
        client.timers.create(orders, "a", hook, delay="1h", payload={"order": 17})
        server.advance("2h")
        assert client.timers.get(orders, "a").status == "completed"
        assert "order 17 was due at" in output.read_text()
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(hook, b"{}", PATIENCE_S)


@pytest.fixture(scope="module")
def postgresql():
    running = PostgresServer()
    running.init()
    running.start()
    yield running
    running.remove()


@pytest.fixture
def orders(request, folder, monkeypatch):
    """Reads the orders of which a program of this name reminded."""
    if request.param in ("django_orders", "flask_orders"):
        return request.param, lambda: sqlite3.connect(folder / "orders.db")
    url = asyncio.run(request.getfixturevalue("postgresql").create_database())
    monkeypatch.setenv(
        "DATABASE_URL", url.replace("postgresql://", "postgresql+asyncpg://", request.param == "async_orders")
    )
    return request.param, lambda: psycopg.connect(url)


@pytest.mark.parametrize(
    "orders", ["django_orders", "flask_orders", "async_orders", "asyncpg_orders", "psycopg_orders"], indirect=True
)
def test_work_is_done_once_in_the_programs_own_transaction(folder, server, orders):
    name, connect = orders
    with serving(folder, name) as (url, _):
        for given in (firing("a", payload={"order": 17}), firing("b", payload={"order": None})):
            request = sign(given, SECRET)
            answers = [
                urllib3.request("POST", url + "/hooks/remind", body=request.body, headers=request.headers)
                for _ in range(2)
            ]
            if given.timer_id == "a":
                assert [each.json() for each in answers] == [{"ok": True}] * 2
            else:
                assert [each.status for each in answers] == [500, 500]
    with contextlib.closing(connect()) as connection:
        cursor = connection.cursor()
        cursor.execute('SELECT "order" FROM orders_reminder')
        assert cursor.fetchall() == [(17,)]
        cursor.execute("SELECT count(*) FROM tocsin_firings")
        assert cursor.fetchall() == [(1,)]


def test_through_a_proxy(folder, server):
    with Proxy() as proxy:
        program = folder / "through_a_proxy.py"
        program.write_text(program.read_text().replace("http://127.0.0.1:3128", proxy.url))
        assert run(folder, program.name) == "pending\n"
        assert proxy.targets == [f"{server.url}/api/v1/timers/create"]


def test_a_chain_that_bills_once_a_month(folder, server):
    with serving(folder, "billing") as (url, _), server.client() as client:
        timer = client.timers.create(
            namespace(client, "billing"), "customer-3", f"{url}/hooks/bill", delay="1d", payload={"month": 1}
        )
        server.advance("62d")
        then = client.timers.get("billing", "customer-3")
        assert (then.status, then.payload) == ("pending", {"month": 4})
        assert (then.execute_at - timer.execute_at).days == 90
    with contextlib.closing(sqlite3.connect(folder / "billing.db")) as database:
        assert database.execute("SELECT * FROM invoices").fetchall() == [("customer-3", n) for n in (1, 2, 3)]


def test_the_test(folder):
    assert "2 passed" in run(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_billing.py")


def test_programs_without_a_receiver(folder, server):
    with server.client() as client:
        namespace(client, "orders")
    assert run(folder, "nightly.py").startswith("Every day at 03:00, Europe/Berlin")
    assert run(folder, "nightly.py").startswith("Every day at 03:00, Europe/Berlin")
    first, last = run(folder, "manage.py").splitlines()
    assert first.startswith("order-17 20") and last.startswith("too late: ")
    assert run(folder, "many.py").splitlines() == ["2500 created", "job-0"]
    assert run(folder, "asynchronous.py") == "coffee pending\n"
    assert run(folder, "charge.py") == "Scheduled\n"
    assert run(folder, "tries.py") == "createTimer 1 200 None\n"


def test_keys(folder, server, monkeypatch):
    key = secrets.token_hex(32)
    (folder / "key").write_text(key)
    monkeypatch.setenv("TOCSIN_KEY", key)
    with monkeypatch.context() as patch:
        patch.setenv("TOCSIN_ADMIN_KEY_FILE", str(folder / "key"))
        patch.setenv("TOCSIN_INSECURE", "true")
        patch.delenv("TOCSIN_KEY")
        keyed = TestServer("--log-level", "warning").start()
    try:
        program = folder / "keys.py"
        program.write_text(program.read_text().replace(server.url, keyed.url))
        made, *entries = run(folder, "keys.py").splitlines()
    finally:
        keyed.stop()
    assert made.endswith(" tk_") and entries == ["key_deleted api", "key_created api"]

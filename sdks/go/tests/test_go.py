"""The Go SDK: its own tests, and the programs of `docs/sdks/go.md`, as they are printed, in a project outside of the
checkout; only addresses differ."""

from __future__ import annotations

import contextlib
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import psycopg
import pymysql
import pytest
from tests.support.mysql import MysqlServer
from tests.support.needs import lacking
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port, wait_for_port
from tests.support.postgresql import PostgresServer
from tocsin_client.testing import TestServer

GO = Path(__file__).parents[1]
PAGE = Path(__file__).parents[3] / "docs/sdks/go.md"
REPLACE = re.search(r"^(go mod edit -replace .*)$", PAGE.read_text(), re.MULTILINE)[1]
PROGRAMS = dict(re.findall(r"^```go\n// (\S+\.go)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))
GUIDE = (PAGE.parents[1] / "how-to/outbox.md").read_text()
OUTBOX = dict(re.findall(r"^```go\n// (\S+\.go)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL))
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
BIN = Path(sys.executable).parent
#: What the tests' tools need; the module itself needs 1.23.
GO_LEAST = (1, 25)

pytestmark = pytest.mark.timeout(900)


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    """Standard output; fails with all output."""
    environment = {**os.environ, "TOCSIN_BIN": str(BIN / "tocsin"), **env}
    ran = subprocess.run(list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{command} failed:\n{ran.stdout[-4000:]}{ran.stderr[-4000:]}"
    return ran.stdout


@pytest.fixture(scope="module", autouse=True)
def _go() -> None:
    version = run("go", "version", cwd=GO / "tests") if shutil.which("go") else ""
    found = re.search(r"go(\d+)\.(\d+)", version)
    if found is None or (int(found[1]), int(found[2])) < GO_LEAST:
        lacking("go", f"the Go SDK's tests need Go {GO_LEAST[0]}.{GO_LEAST[1]} or newer")


@pytest.fixture(scope="module")
def server():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOCSIN_BIN", str(BIN / "tocsin"))
        with TestServer("--log-level", "warning") as running:
            yield running


@pytest.fixture(scope="module")
def project(tmp_path_factory, server):
    """The page's programs, built in a module that has the SDK by `replace`; the server's address replaces the page's."""
    folder = tmp_path_factory.mktemp("example")
    for name, text in (PROGRAMS | OUTBOX).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text.replace("http://127.0.0.1:8080", server.url))
    shutil.copy(GO / "tests/go.mod", folder)
    shutil.copy(GO / "tests/go.sum", folder)
    run("go", "mod", "edit", "-module=example", "-dropreplace=tocsin.dev/go", cwd=folder)
    run("bash", "-c", REPLACE, cwd=folder, TOCSIN=str(GO.parents[1]))
    run("go", "build", "-o", "bin/", "./...", cwd=folder)
    return folder


@contextlib.contextmanager
def serving(project, name, **env):
    """The program on a free port; yields its URL and the file with its output."""
    port = free_port()
    output = project / f"{name}.log"
    environment = {**os.environ, "TOCSIN_SECRET": SECRET, "ADDRESS": f"127.0.0.1:{port}", **env}
    with output.open("w") as log:
        process = subprocess.Popen([project / "bin" / name], cwd=project, env=environment, stdout=log, stderr=log)
        try:
            wait_for_port(port, process)
            yield f"http://127.0.0.1:{port}", output
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def postgresql():
    server = PostgresServer()
    server.init()
    server.start()
    try:
        yield f"{server.url()}?sslmode=disable"
    finally:
        server.remove()


@pytest.fixture(scope="module")
def mysql():
    server = MysqlServer()
    server.init()
    server.start()
    with pymysql.connect(host="127.0.0.1", port=server.port, user="root") as connection:
        connection.cursor().execute("CREATE DATABASE app")
    yield f"root@tcp(127.0.0.1:{server.port})/app"
    server.remove()


def test_module(postgresql):
    run("go", "test", "./...", cwd=GO)
    run("go", "test", "./...", cwd=GO / "tests", TOCSIN_TEST_POSTGRESQL=postgresql)
    assert "\nrequire" not in (GO / "go.mod").read_text(), "the module needs only the standard library"


def test_outbox_in_mysql(mysql):
    run("go", "test", "-run", "TestOutbox", "./...", cwd=GO / "tests", TOCSIN_TEST_MYSQL_DSN=mysql)


def test_the_program_of_the_outbox(project, server, postgresql):
    assert GUIDE.count("```go\n") == len(OUTBOX) == 1
    with server.client() as client:
        client.namespaces.create("shop")
        done = run(project / "bin/shop", cwd=project, DATABASE_URL=postgresql).splitlines()
        assert done == ["tea <nil>", "unicorn out of stock", "1 created <nil>"]
        assert [timer.payload for timer in client.timers.list("shop")] == [{"order": 1}]


def test_the_first_program_is_short():
    body = PROGRAMS["first-timer/main.go"].partition("func main() {\n")[2].rpartition("}\n")[0]
    assert len(body.splitlines()) < 10


def test_every_program_is_read():
    assert len(re.findall("^```go$", PAGE.read_text(), re.MULTILINE)) == len(PROGRAMS)


def test_programs(project, server):
    assert run("gofmt", "-l", ".", cwd=project) == ""
    run("go", "vet", "./...", cwd=project)
    with server.client() as client:
        client.namespaces.create("orders", secret=SECRET)
    assert run(project / "bin/first-timer", cwd=project).startswith("tea pending 20")
    assert run(project / "bin/nightly", cwd=project).startswith("Every day at 03:00, Europe/Berlin")
    first, last = run(project / "bin/manage", cwd=project).splitlines()
    assert first.startswith("order-17 20") and last.startswith("too late: ")
    assert run(project / "bin/many", cwd=project).splitlines() == ["2500 created", "job-0"]
    assert run(project / "bin/charge", cwd=project) == "Scheduled\n"


def test_receiver(project, server):
    with serving(project, "reminders") as (url, output), server.client() as client:
        client.namespaces.create("reminders", secret=SECRET)
        client.timers.create("reminders", "a", f"{url}/hooks/remind", delay="1h", payload={"order": 17})
        server.advance("2h")
        assert client.timers.get("reminders", "a").status == "completed"
        assert "order 17 was due at" in output.read_text()
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{url}/hooks/remind", b"{}", PATIENCE_S)


@pytest.mark.parametrize(("name", "table", "row"), [
    ("billing-pgx", "invoices (customer TEXT)", None),
    ("billing-sql", "accounts (owner TEXT, balance INT)", "INSERT INTO accounts VALUES ('c', 1)"),
])  # fmt: skip
def test_deduplication_in_transactions_of_the_program(project, server, postgresql, name, table, row):
    with psycopg.connect(postgresql, autocommit=True) as database:
        database.execute("DROP TABLE IF EXISTS tocsin_firings")
        database.execute(f"CREATE TABLE {table}")
        if row:
            database.execute(row)
        with serving(project, name, DATABASE_URL=postgresql) as (url, _), server.client() as client:
            client.namespaces.create(name, secret=SECRET)
            client.timers.create(name, "c", f"{url}/hooks/bill", delay="1h")
            server.advance("2h")
            assert client.timers.get(name, "c").status == "completed"
        assert database.execute("SELECT answer FROM tocsin_firings").fetchall()[0][0].startswith('{"status":200')
        changed = "SELECT customer FROM invoices" if row is None else "SELECT balance FROM accounts"
        assert database.execute(changed).fetchall() == [("c" if row is None else 0,)]


def test_proxy_and_round_tripper(project, server):
    lines = run(project / "bin/spans", cwd=project).splitlines()
    assert lines == ["GET /api/v1/cluster 200 true", "getCluster 1 200"]
    with proxy(server.url) as (url, requested):
        assert run(project / "bin/proxy", cwd=project, PROXY=url)
        assert requested == ["http://tocsin.example:8080/api/v1/namespaces/list"]


@contextlib.contextmanager
def proxy(target):
    """An HTTP proxy that sends everything to the target; yields its URL and what was requested of it."""
    requested = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            requested.append(self.path)
            body = self.rfile.read(int(self.headers["content-length"]))
            path = urllib.parse.urlsplit(self.path).path
            request = urllib.request.Request(target + path, body, {"content-type": "application/json"})
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                text = answer.read()
            self.send_response(200)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}", requested
        finally:
            listening.shutdown()
            thread.join()


def test_the_test(project):
    run("go", "test", "./billing", cwd=project)

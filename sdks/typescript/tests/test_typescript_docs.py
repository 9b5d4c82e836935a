"""The programs of `docs/sdks/typescript.md` run as they are printed, with the installed package and a real server; only ports
differ."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import urllib.error
import urllib.request

import asyncpg
import pytest
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port, wait_for_port
from tests.support.postgresql import PostgresServer
from tocsin_client.testing import TestServer
from typescript_tools import ROOT, run

# Building takes a while on a slow machine.
pytestmark = pytest.mark.timeout(300)

PAGE = (ROOT / "docs/sdks/typescript.md").read_text()
PROGRAMS = dict(re.findall(r"^```js\n// ([\w.-]+\.mjs)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
#: A proxy that prints where its connections go.
PROXY = """
import { createServer } from "node:http";
import { connect } from "node:net";

const server = createServer();
server.on("connect", (request, client, head) => {
  const [host, port] = request.url.split(":");
  const target = connect(port, host, () => {
    console.log(`to ${request.url}`);
    client.write("HTTP/1.1 200 OK\\r\\n\\r\\n");
    target.write(head);
    target.pipe(client).pipe(target);
  });
  target.on("error", () => client.destroy());
  client.on("error", () => target.destroy());
});
server.listen(9000, "127.0.0.1");
"""
#: The server of `billing.mjs`, killed once between the work and its answer.
KILLED = """
import { existsSync, writeFileSync } from "node:fs";
import { serve } from "@hono/node-server";
import { bill } from "./billing.mjs";

async function fetch(request) {
  const response = await bill(request);
  if (!existsSync("killed")) {
    writeFileSync("killed", "");
    process.kill(process.pid, "SIGKILL");
  }
  return response;
}
serve({ fetch, port: 9000 });
"""
SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"


@pytest.fixture
def folder(project, server):
    """The programs, with the server's address in place of the page's."""
    return written(project, server)


def written(project, server):
    for name, text in PROGRAMS.items():
        (project / name).write_text(text.replace("http://127.0.0.1:8080", server.url))
    return project


@pytest.fixture(scope="module")
def database_url():
    """An empty database."""
    postgresql = PostgresServer()
    try:
        postgresql.init()
        postgresql.start()
        yield asyncio.run(postgresql.create_database())
    finally:
        postgresql.remove()


@contextlib.contextmanager
def serving(folder, name, port=None, **environment):
    """The program as a server, on a free port unless one is given; yields its URL and the file with its output."""
    port = port or free_port()
    output, program = folder / "output", folder / f"{name}.mjs"
    program.write_text(program.read_text().replace("9000", str(port)))
    with output.open("w") as log:
        environment = {**os.environ, "TOCSIN_SECRET": SECRET, **environment}
        process = subprocess.Popen(["node", program.name], cwd=folder, env=environment, stdout=log, stderr=log)
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
    assert len(PROGRAMS["first-timer.mjs"].strip().splitlines()) < 10


def test_every_program_is_run():
    assert len(re.findall("^```(js|ts)$", PAGE, re.MULTILINE)) == len(PROGRAMS)


def test_programs_without_a_receiver(project):
    # A server of its own: where the clock moves by days, thousands of timers without a receiver would be retried.
    with TestServer("--log-level", "warning") as server:
        folder = written(project, server)
        with server.client() as client:
            namespace(client, "orders")
        program = folder / "first-timer.mjs"
        hook = f"{server.url}/api/v1/none"
        program.write_text(program.read_text().replace("http://127.0.0.1:9000/", hook).replace('"5s"', '"10ms"'))
        pending, ended = run("node", "first-timer.mjs", cwd=folder).splitlines()
        assert pending.startswith("tea pending 20") and ended == "failed"
        assert run("node", "nightly.mjs", cwd=folder).startswith("Every day at 03:00, Europe/Berlin")
        first, last = run("node", "manage.mjs", cwd=folder).splitlines()
        assert first.startswith("order-17 20") and last.startswith("too late: ")
        assert run("node", "many.mjs", cwd=folder).splitlines() == ["2500 created", "job-0"]
        assert run("node", "limits.mjs", cwd=folder).strip() in ("default", "orders")
        assert run("node", "charge.mjs", cwd=folder) == "Scheduled\n"


def test_a_proxy(folder, server):
    (folder / "proxy-server.mjs").write_text(PROXY)
    with serving(folder, "proxy-server") as (url, output):
        assert run("node", "proxy.mjs", cwd=folder, HTTPS_PROXY=url) == "true\n"
        assert f"to {server.url.removeprefix('http://')}" in output.read_text()


def test_keys(project, tmp_path, monkeypatch):
    file, key = tmp_path / "admin-key", f"tk_{'0' * 12}_{'1' * 40}"
    file.touch(mode=0o600)
    file.write_text(key)
    monkeypatch.setenv("TOCSIN_ADMIN_KEY_FILE", str(file))
    monkeypatch.setenv("TOCSIN_INSECURE", "true")
    with TestServer("--log-level", "warning") as server:
        written(project, server)
        made, count, *actions = run("node", "keys.mjs", cwd=project, TOCSIN_KEY=key).split()
    assert (made, actions) == ("tk_", ["key_deleted", "key_created"]) and int(count) >= 1


@pytest.mark.parametrize("name", ["express-app", "fastify-app", "hono-app"])
def test_receivers(folder, server, name):
    with serving(folder, name) as (url, output), server.client() as client:
        hook = f"{url}/hooks/remind"
        client.timers.create(namespace(client, name), "a", hook, delay="1h", payload={"order": 17})
        server.advance("2h")
        assert client.timers.get(name, "a").status == "completed"
        assert "order 17 was due at" in output.read_text()
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(hook, b"{}", PATIENCE_S)


def test_a_chain_that_bills_once_a_month(folder, server, database_url):
    with serving(folder, "billing-server", DATABASE_URL=database_url) as (hook, _), server.client() as client:
        timer = client.timers.create(namespace(client, "billing"), "customer-3", hook, delay="1d", payload={"month": 1})
        server.advance("62d")
        then = client.timers.get("billing", "customer-3")
        assert (then.status, then.payload) == ("pending", {"month": 4})
        assert (then.execute_at - timer.execute_at).days == 90
    assert asyncio.run(invoices(database_url, "customer-3")) == [1, 2, 3]
    assert "pass 2" in run(
        "node", "--test", "billing.test.mjs", cwd=folder, DATABASE_URL=database_url, TOCSIN_SECRET=SECRET
    )
    assert asyncio.run(invoices(database_url, "customer-4")) == [1]
    # The same tests of the same receiver in a transaction of another library, for another customer.
    text = (folder / "billing.test.mjs").read_text()
    text = text.replace("./billing.mjs", "./billing-kysely.mjs").replace("customer-4", "customer-6")
    (folder / "kysely.test.mjs").write_text(text)
    assert "pass 2" in run(
        "node", "--test", "kysely.test.mjs", cwd=folder, DATABASE_URL=database_url, TOCSIN_SECRET=SECRET
    )
    assert asyncio.run(invoices(database_url, "customer-6")) == [1]


def test_work_whose_receiver_is_killed_before_its_answer_is_done_once(folder, server, database_url):
    program, port = folder / "killed.mjs", free_port()
    with server.client() as client:
        for attempts in (1, 2):
            program.write_text(KILLED)
            with serving(folder, "killed", port, DATABASE_URL=database_url) as (url, _):
                if attempts == 1:
                    client.timers.create(
                        namespace(client, "killed"), "customer-5", url, delay="1d", payload={"month": 1}
                    )
                server.advance("25h" if attempts == 1 else "1h")
            timer = client.timers.get("killed", "customer-5")
            assert timer.payload == {"month": attempts}
            assert asyncio.run(invoices(database_url, "customer-5")) == [1]


async def invoices(url, customer):
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch("SELECT month FROM invoices WHERE customer = $1 ORDER BY month", customer)
        return [row["month"] for row in rows]
    finally:
        await connection.close()

"""The programs of the guides for those who come from other systems run as printed, with those systems: APScheduler, Celery
and BullMQ with a real Redis. Google's API is a stand-in, which has what its reference documents. Only addresses differ."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from tests.docs.blocks import ROOT, blocks_of, pages
from tests.support.needs import lacking
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port, wait_for_port
from tests.support.program import running
from tests.support.redis import RedisServer

from test_docs import namespace, run, serving
from test_outbox import wait_until

GUIDES = [page for page in pages() if "/migrate-" in page]
PROGRAMS = {
    named[1]: block.text
    for guide in GUIDES
    for block in blocks_of(guide)
    if (named := re.match(r"(?:#|//) (\w+\.\w+)\n", block.text))
}


def serving_app(folder, name):
    """The guide's receiver on a free port; yields its URL and the file with its output."""
    return serving(folder, name, ("-m", "uvicorn", f"{name}:app", "--port"))


@pytest.fixture
def folder(tmp_path, server):
    """The programs, with the server's address in place of the guides'."""
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text.replace("http://127.0.0.1:8080", server.url))
    return tmp_path


def towards(folder, name, url):
    """Lets a program call the receiver of this test."""
    replaced(folder, name, "http://127.0.0.1:9000", url)


def replaced(folder, name, former, now):
    program = folder / name
    assert former in program.read_text()
    program.write_text(program.read_text().replace(former, now))


@pytest.fixture
def redis():
    with running(RedisServer()) as started:
        yield started


@contextlib.contextmanager
def at_work(folder, *command):
    """The program while it runs; it is killed, as a program that never ends is switched off."""
    log = folder / "former"
    with log.open("w") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=output, env={**os.environ, "PYTHONUNBUFFERED": "1"}
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait(PATIENCE_S)


def moved(command, folder, expected):
    """Runs the program that moves jobs until it has found what the former system is only about to have."""

    def has_moved():
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return expected in ran.stdout

    wait_until(has_moved)


def is_in_a_day(timer):
    return abs(timer.execute_at - datetime.now(timer.execute_at.tzinfo) - timedelta(days=1)) < timedelta(minutes=2)


def test_every_guide_begins_with_what_is_needed_and_ends_with_the_cut_over():
    for guide in GUIDES:
        headings = re.findall("^## (.*)$", (ROOT / guide).read_text(), re.MULTILINE)
        if "translate" not in guide:
            assert (headings[0], headings[-1]) == ("What you need", "Cut over"), guide


def test_a_decorated_job_reports_to_its_monitor(folder, server):
    with server.client() as client:
        client.monitors.put("default", "nightly-invoices", every="1d")
        assert run(folder, "cronitor_after.py") == "sending\n"
        assert client.monitors.get("default", "nightly-invoices").state == "up"


def test_apscheduler_jobs_are_moved(folder, server):
    with server.client() as client:
        client.namespaces.create("reports")
        with at_work(folder, sys.executable, "apscheduler_before.py"):

            def has_jobs():
                with contextlib.closing(sqlite3.connect(folder / "jobs.db")) as database:
                    try:
                        return database.execute("SELECT count(*) FROM apscheduler_jobs").fetchone() == (2,)
                    except sqlite3.OperationalError:
                        return False

            wait_until(has_jobs)
        assert run(folder, "apscheduler_move.py").split("\n")[:2] in (
            ["stays report", "moved remind-17"],
            ["moved remind-17", "stays report"],
        )
        timer = client.timers.get("reports", "remind-17")
        assert (timer.payload, is_in_a_day(timer)) == ({"order": 17}, True)
        assert run(folder, "apscheduler_move.py") == "stays report\n"
        client.timers.delete("reports", "remind-17")
        client.namespaces.delete("reports")


def test_celery_tasks_are_moved(folder, server, redis):
    replaced(folder, "celery_before.py", "redis://127.0.0.1:6379", f"redis://127.0.0.1:{redis.port}")
    celery = (sys.executable, "-m", "celery", "--app", "celery_before")
    with server.client() as client, at_work(folder, *celery, "worker", "--pool", "solo", "--statedb", "state.db"):
        name = client.namespaces.create("celery").name
        replaced(folder, "celery_move.py", '"orders"', f'"{name}"')
        run(folder, "celery_before_order.py")
        moved([sys.executable, "celery_move.py"], folder, "moved remind-17")
        timer = client.timers.get(name, "remind-17")
        assert (timer.payload, is_in_a_day(timer)) == ({"order": 17}, True)
        shown = subprocess.run([*celery, "inspect", "revoked", "--json"], cwd=folder, capture_output=True, check=True)
        assert [len(ids) for ids in json.loads(shown.stdout).values()] == [1]
        client.timers.delete(name, "remind-17")


def test_bullmq_jobs_are_moved(folder, server, redis):
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        lacking("node", "there is no node with npm")
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build/sdk-typescript.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as the tests of the TypeScript SDK, which have the same packages
        made = ("make", "--silent", "sdk-typescript", f"PYTHON={sys.executable}")
        subprocess.run(made, cwd=ROOT, capture_output=True, check=True)
    (folder / "node_modules").mkdir()
    (folder / "node_modules/bullmq").symlink_to(ROOT / "sdks/typescript/node_modules/bullmq")
    for name in ("bullmq_before.mjs", "bullmq_move.mjs"):
        replaced(folder, name, "port: 6379", f"port: {redis.port}")
    with server.client() as client, at_work(folder, node, "bullmq_before.mjs"):
        name = client.namespaces.create("bullmq").name
        replaced(folder, "bullmq_move.mjs", '"orders"', f'"{name}"')
        moved([node, "bullmq_move.mjs"], folder, "moved remind-17")
        timer = client.timers.get(name, "remind-17")
        assert (timer.payload, timer.retry_policy.max_attempts, is_in_a_day(timer)) == ({"order": 17}, 5, True)
        client.timers.delete(name, "remind-17")
        ran = subprocess.run([node, "bullmq_move.mjs"], cwd=folder, capture_output=True, text=True, check=True)
        assert ran.stdout == "", "it is no longer in the queue"


class Google(BaseHTTPRequestHandler):
    """The list of tasks and their deletion, as the reference of Cloud Tasks describes them."""

    tasks: ClassVar[dict] = {}

    def do_GET(self):
        assert (
            self.path
            == "/v2/projects/project/locations/europe-west1/queues/reminders/tasks?responseView=FULL&pageSize=1000"
        )
        self.answer({"tasks": list(self.tasks.values())[:1]} if self.tasks else {})

    def do_DELETE(self):
        del self.tasks[self.path.removeprefix("/v2/")]
        self.answer({})

    def answer(self, body):
        assert self.headers["authorization"] == "Bearer token"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_):
        """Nothing."""


def test_cloud_tasks_are_moved(folder, server, monkeypatch):
    queue = "projects/project/locations/europe-west1/queues/reminders"
    for n in (17, 18):
        name = f"{queue}/tasks/remind-{n}"
        Google.tasks[name] = {
            "name": name,
            "scheduleTime": "2040-01-01T00:00:00Z",
            "httpRequest": {
                "url": "https://shop.example/hooks/remind",
                "httpMethod": "POST",
                "headers": {"User-Agent": "Google-Cloud-Tasks", "Content-Type": "application/json"},
                "body": base64.b64encode(b'{"order": %d}' % n).decode(),
            },
        }
    monkeypatch.setenv("GOOGLE_TOKEN", "token")
    google = ThreadingHTTPServer(("127.0.0.1", 0), Google)
    threading.Thread(target=google.serve_forever, daemon=True).start()
    try:
        with server.client() as client:
            name = client.namespaces.create("google").name
            replaced(folder, "cloud_tasks_move.py", '"reminders"', f'"{name}"')
            replaced(
                folder,
                "cloud_tasks_move.py",
                "https://cloudtasks.googleapis.com",
                f"http://127.0.0.1:{google.server_port}",
            )
            assert run(folder, "cloud_tasks_move.py") == "moved remind-17\nmoved remind-18\n"
            timers = sorted(client.timers.list(name), key=lambda timer: timer.id)
            assert [base64.b64decode(timer.body.base64) for timer in timers] == [b'{"order": 17}', b'{"order": 18}']
            assert {timer.body.content_type for timer in timers} == {"application/json"}
            assert run(folder, "cloud_tasks_move.py") == ""
    finally:
        google.shutdown()
        google.server_close()


def test_celery(folder, server):
    with serving_app(folder, "celery_receiver") as (url, output), server.client() as client:
        namespace(client, "orders")
        towards(folder, "celery_order.py", url)
        run(folder, "celery_order.py")
        server.advance("25h")
        assert client.timers.get("orders", "remind-17").status == "completed"
        assert "reminding 17" in output.read_text()


def test_apscheduler(folder, server):
    with serving_app(folder, "apscheduler_receiver") as (url, output), server.client() as client:
        namespace(client, "reports")
        towards(folder, "apscheduler_jobs.py", url)
        run(folder, "apscheduler_jobs.py")
        run(folder, "apscheduler_jobs.py")
        server.advance("25h")
        assert "reminding 17" in output.read_text()
        assert "report of" in output.read_text()
        client.schedules.delete("reports", "report")


def test_cloud_tasks(folder, server):
    with server.client() as client:
        namespace(client, "reminders")
        run(folder, "cloud_tasks_order.py")
        timer = client.timers.get("reminders", "remind-17")
        assert (timer.status, timer.body.json) == ("pending", {"order": 17})
        client.timers.delete("reminders", "remind-17")


def test_bullmq(folder, server):
    node = shutil.which("node")
    if node is None:
        lacking("node", "the guide's programs are for Node.js")
    port = free_port()
    output = folder / "output"
    with output.open("w") as log, server.client() as client:
        client.namespaces.create("jobs")
        process = subprocess.Popen([node, "bullmq_receiver.mjs"], cwd=folder, env={"PORT": str(port)}, stdout=log)
        try:
            wait_for_port(port, process)
            towards(folder, "bullmq_order.mjs", f"http://127.0.0.1:{port}")
            made = (folder / "bullmq_order.mjs").read_text().replace('"orders"', '"jobs"')
            (folder / "bullmq_order.mjs").write_text(made)
            printed = subprocess.run(
                [node, "bullmq_order.mjs"], cwd=folder, capture_output=True, text=True, check=False
            )
            assert (printed.stdout, printed.stderr) == ("pending\n", "")
            server.advance("25h")
            assert client.timers.get("jobs", "remind-17").status == "completed"
        finally:
            process.terminate()
            process.wait(PATIENCE_S)
    assert output.read_text() == "reminding 17\n"

"""The programs of the guides for those who come from other systems: Tocsin's side of each runs as printed."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from tests.support.needs import lacking
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port, wait_for_port

from test_docs import PAGE, namespace, run, serving

GUIDES = sorted((PAGE.parents[1] / "how-to").glob("migrate-*.md"))
PROGRAMS = {
    name: text
    for guide in GUIDES
    for name, text in re.findall(
        r"^```\w+\n(?:#|//) (\w+\.\w+)\n(.*?)^```$", guide.read_text(), re.MULTILINE | re.DOTALL
    )
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
    program = folder / name
    program.write_text(program.read_text().replace("http://127.0.0.1:9000", url))


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

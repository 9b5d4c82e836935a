"""The commands of the pages about service calls are run as they stand, against a real server and a real echo."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.needs import lacking

ROOT = Path(__file__).parents[3]
TOCSIN = f"{sys.executable} -m tocsin"
#: What the test has started itself.
STARTED = ("make run", "tocsin echo", "tocsin serve")


@pytest.fixture
def receiver():
    """The URL of `tocsin echo`, and its process."""
    command = [sys.executable, "-u", "-m", "tocsin", "echo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield re.search(r"http://127.0.0.1:\d+", process.stderr.readline())[0], process
        process.terminate()


def run(text, server, receiver, folder):
    """What became of the text's shell blocks as one script; those that the test has done itself are left out."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    script = "".join(block for block in blocks if not any(word in block for word in STARTED))
    for written, here in (
        (".venv/bin/tocsin", TOCSIN),
        ("http://127.0.0.1:9000", receiver),
        ("http://127.0.0.1:8080", server),
        ("--in 5s", "--in 1s"),
    ):
        script = script.replace(written, here)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
    ran = subprocess.run(
        ["sh", "-euc", script], env={**environment, "TOCSIN_URL": server}, cwd=folder, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran


def test_first_service_call(node, receiver, tmp_path):
    if shutil.which("curl") is None:
        lacking("curl", "the tutorial's last command is curl")
    url, echo = receiver
    ran = run((ROOT / "docs/tutorial/service-calls.md").read_text(encoding="utf-8"), node, url, tmp_path)
    assert "it wasn't made" in ran.stdout
    assert "CONNECTION_FAILED" in ran.stderr
    assert "starred" in ran.stdout
    assert "ServiceCallSucceeded" in ran.stdout
    assert "is deleted." in ran.stderr
    same = [line for line in ran.stdout.splitlines() if re.fullmatch(r"[0-9a-f-]{36}", line)]
    assert len(same) == 2
    assert same[0] == same[1]
    # The call made over HTTP is the last that the page submits.
    came = []
    while not came or '{"order":18}' not in came[-1].replace(" ", ""):
        came.append(echo.stdout.readline())
        assert came[-1], came
    assert sum('{"order":17}' in line.replace(" ", "") for line in came) == 1


def test_readme(node, receiver, tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    ran = run(text.partition("\n## Service calls\n")[2].partition("\n## ")[0], node, receiver[0], tmp_path)
    assert "Succeeded" in ran.stdout
    assert "reminder" in ran.stdout

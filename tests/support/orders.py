"""Runs an order service of `examples/orders` by a line of its README, and the README's curl lines; addresses differ."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tocsin_client.testing import TestServer

from tests.support.needs import lacking
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port, wait_for_port

EXAMPLES = Path(__file__).parents[2] / "examples/orders"
_SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
_BIN = Path(sys.executable).parent


def run(folder: Path, *command: str | Path, **environment: str) -> str:
    """Standard output of a program of the example, whose test server is that of this checkout; fails with all output."""
    environment = {**os.environ, "TOCSIN_BIN": str(_BIN / "tocsin"), **environment}
    ran = subprocess.run(
        list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, f"{command} failed:\n{ran.stdout[-4000:]}{ran.stderr[-4000:]}"
    return ran.stdout


def check_readme(language: str, folder: Path, program: str, *, instead: str = "", **environment: str) -> None:
    """Starts the service in `folder` by the README's line that begins with `program`, or by another one `instead`, and types
    the README's curl lines. Each has to print the JSON that stands in the comment after it, if there is one."""
    if shutil.which("curl") is None:
        lacking("curl", "it is needed for the lines of the examples")
    lines = re.findall(r"^```sh\n(.*?)^```$", (EXAMPLES / language / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    readme = "".join(lines)
    (start,) = re.findall(rf"^{re.escape(program)}(?: .*)?$", readme, re.MULTILINE)
    curl_lines = re.findall(r"^(curl .*)\n(?:# (.*)\n)?", readme, re.MULTILINE)
    assert len(curl_lines) == readme.count("curl ") > 2
    with _server() as tocsin, _serving(folder, instead or start, tocsin.url, environment) as url:
        for line, shown in curl_lines:
            typed = line.replace("http://127.0.0.1:9000", url).replace("http://127.0.0.1:8080", tocsin.url)
            printed = json.loads(run(folder, "sh", "-c", f"{typed} --silent --show-error --fail-with-body"))
            assert not shown or printed == json.loads(shown), line


@contextlib.contextmanager
def _server() -> Iterator[TestServer]:
    former = os.environ.get("TOCSIN_BIN")
    os.environ["TOCSIN_BIN"] = str(_BIN / "tocsin")
    try:
        with TestServer("--log-level", "warning") as server, server.client() as client:
            client.namespaces.create("orders", secret=_SECRET)
            yield server
    finally:
        if former is None:
            del os.environ["TOCSIN_BIN"]
        else:
            os.environ["TOCSIN_BIN"] = former


@contextlib.contextmanager
def _serving(folder: Path, start: str, tocsin_url: str, environment: dict[str, str]) -> Iterator[str]:
    """The service on a free port; yields its URL."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = {
        **os.environ,
        "PATH": f"{_BIN}{os.pathsep}{os.environ['PATH']}",
        "TOCSIN_URL": tocsin_url,
        "TOCSIN_SECRET": _SECRET,
        "PUBLIC_URL": url,
        "PORT": str(port),
        **environment,
    }
    with (folder / "service.log").open("w") as log:
        command = ["sh", "-c", f"exec {start.replace('9000', str(port))}"]
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            wait_for_port(port, process)
            yield url
        except BaseException:
            sys.stderr.write((folder / "service.log").read_text()[-4000:])
            raise
        finally:
            process.terminate()
            process.wait(PATIENCE_S)

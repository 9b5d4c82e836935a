"""The package as users get it: packed, and installed in a folder outside of the checkout."""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from tests.support.needs import lacking
from tocsin_client.testing import TestServer
from typescript_tools import ROOT, SDK, run

PAGE = ROOT / "docs/sdks/typescript.md"
#: Of the checkout, for programs that use them; the package itself needs none.
LINKED = ("@hono", "@types", "express", "fastify", "hono", "kysely", "mysql2", "pg", "undici")


@pytest.fixture(scope="session", autouse=True)
def _program():
    """The server of this checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOCSIN_BIN", str(Path(sys.executable).parent / "tocsin"))
        yield


@pytest.fixture(scope="session")
def built():
    """The folder of the SDK, built."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        lacking("node", "there is no node with npm")
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build/sdk-typescript.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several processes may run these tests
        run("make", "--silent", "sdk-typescript", f"PYTHON={sys.executable}", cwd=ROOT)
    return SDK


@pytest.fixture(scope="session")
def project(built, tmp_path_factory):
    """A folder with the package installed from its tarball, and with the frameworks of the docs beside it."""
    folder = tmp_path_factory.mktemp("project")
    run("npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(folder), cwd=built)
    (tarball,) = folder.glob("*.tgz")
    (folder / "package.json").write_text(json.dumps({"private": True, "type": "module"}))
    install = re.search(
        r'^npm install "\$TOCSIN/sdks/typescript/(tocsin-client-.*\.tgz)"$', PAGE.read_text(), re.MULTILINE
    )
    assert install is not None and install[1] == tarball.name
    run("npm", "install", "--silent", "--offline", "--no-audit", "--no-fund", str(tarball), cwd=folder)
    assert [path.name for path in (folder / "node_modules").iterdir() if path.name[0] != "."] == ["tocsin-client"]
    for name in LINKED:
        (folder / "node_modules" / name).symlink_to(built / "node_modules" / name)
    return folder


@pytest.fixture(scope="module")
def server():
    with TestServer("--log-level", "warning") as running:
        yield running

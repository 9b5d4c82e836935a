"""The order service of `examples/orders/typescript`, with the package as users install it."""

from __future__ import annotations

import asyncio
import json
import shutil

import pytest
from tests.support.orders import EXAMPLES, check_readme, run
from tests.support.postgresql import PostgresServer
from typescript_tools import SDK

# Building takes a while on a slow machine.
pytestmark = pytest.mark.timeout(300)

EXAMPLE = EXAMPLES / "typescript"


@pytest.fixture(scope="module")
def folder(built, project, tmp_path_factory):
    """The service, compiled with the checkout's tools, which are those that it asks for."""
    folder = tmp_path_factory.mktemp("orders")
    shutil.copytree(EXAMPLE / "src", folder / "src")
    for name in ("package.json", "tsconfig.json"):
        shutil.copy(EXAMPLE / name, folder)
    (folder / "node_modules").symlink_to(project / "node_modules")
    run(folder, built / "node_modules/.bin/tsc")
    return folder


@pytest.fixture(scope="module")
def postgresql():
    server = PostgresServer()
    try:
        server.init()
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def database_url(postgresql):
    """An empty database."""
    return asyncio.run(postgresql.create_database())


def test_asks_for_what_it_is_tested_with():
    of_sdk, manifest, lock = (
        json.loads(path.read_text())
        for path in (SDK / "package.json", EXAMPLE / "package.json", EXAMPLE / "package-lock.json")
    )
    asked = {**manifest["dependencies"], **manifest["devDependencies"]}
    assert asked.pop("tocsin-client") == "file:../../../sdks/typescript"
    assert asked.items() <= of_sdk["devDependencies"].items()
    assert lock["packages"][""]["dependencies"] == manifest["dependencies"]
    assert lock["packages"]["node_modules/tocsin-client"]["version"] == of_sdk["version"]


def test_its_test(folder, database_url):
    assert "pass 3" in run(folder, "npm", "test", "--silent", DATABASE_URL=database_url)


def test_readme(folder, database_url):
    check_readme("typescript", folder, "npm start", DATABASE_URL=database_url)

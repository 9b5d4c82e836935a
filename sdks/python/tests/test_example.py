"""The order service of `examples/orders/python`."""

from __future__ import annotations

import re
import shutil
import sys

import pytest
from tests.support.orders import EXAMPLES, check_readme, run

EXAMPLE = EXAMPLES / "python"
REQUIREMENTS = EXAMPLES.parents[1] / "requirements"


@pytest.fixture
def folder(tmp_path):
    for source in EXAMPLE.glob("*.py"):
        shutil.copy(source, tmp_path)
    return tmp_path


def test_asks_for_what_it_is_tested_with():
    asked, installed = (
        set(re.findall(r"^([a-z0-9-]+==\S+)", path.read_text(), re.MULTILINE))
        for path in (EXAMPLE / "requirements.txt", REQUIREMENTS / "dev.txt")
    )
    assert asked and asked <= installed


def test_its_test(folder):
    # The plugins of this checkout's tests are none of its own.
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    assert "3 passed" in run(folder, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", **environment)


def test_readme(folder):
    check_readme("python", folder, "uvicorn")

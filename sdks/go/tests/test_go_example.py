"""The order service of `examples/orders/go`, with the SDK of this checkout, which its module names."""

from __future__ import annotations

import shutil

import pytest
from tests.support.needs import lacking
from tests.support.orders import EXAMPLES, check_readme, run

EXAMPLE = EXAMPLES / "go"

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(autouse=True)
def _go() -> None:
    if shutil.which("go") is None:
        lacking("go", "the example needs it")


def test_its_test() -> None:
    assert run(EXAMPLE, "gofmt", "-l", ".") == ""
    run(EXAMPLE, "go", "vet", "./...")
    run(EXAMPLE, "go", "test", "-count=1", "./...")


def test_readme(tmp_path) -> None:
    # `go run` would not pass the end of the test to the program.
    run(EXAMPLE, "go", "build", "-o", tmp_path / "orders", ".")
    check_readme("go", tmp_path, "go run .", instead="./orders")

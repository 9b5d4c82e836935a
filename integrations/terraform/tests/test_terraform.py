"""The Terraform provider: its Go tests, and `make terraform`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.needs import lacking

PROVIDER = Path(__file__).parents[1]
ROOT = PROVIDER.parents[1]
#: What the plugin framework needs.
GO_LEAST = (1, 25)

pytestmark = pytest.mark.timeout(900)


def run(*command: str, cwd: Path = PROVIDER) -> str:
    """Standard output; fails with all output."""
    environment = {**os.environ, "TOCSIN_BIN": str(Path(sys.executable).parent / "tocsin")}
    ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{command} failed:\n{ran.stdout[-4000:]}{ran.stderr[-4000:]}"
    return ran.stdout


@pytest.fixture(scope="module", autouse=True)
def _go() -> None:
    found = re.search(r"go(\d+)\.(\d+)", run("go", "version") if shutil.which("go") else "")
    if found is None or (int(found[1]), int(found[2])) < GO_LEAST:
        lacking("go", f"the Terraform provider needs Go {GO_LEAST[0]}.{GO_LEAST[1]} or newer")


def test_provider() -> None:
    run("go", "test", "-count=1", "-skip", "TestAcceptance", "./...")


def test_acceptance() -> None:
    if not (os.environ.get("TF_ACC_TERRAFORM_PATH") or shutil.which("terraform") or shutil.which("tofu")):
        lacking("terraform", "there is no terraform or tofu on the path, and TF_ACC_TERRAFORM_PATH names none")
    assert "--- PASS: TestAcceptance" in run(
        "go", "test", "-count=1", "-v", "-run", "TestAcceptance", "./internal/provider"
    )


def test_it_is_built_where_terraform_finds_it() -> None:
    run("make", "terraform", cwd=ROOT)
    assert list((ROOT / "build/terraform/tocsin.dev/tocsin/tocsin").glob("*/*/terraform-provider-tocsin_v*"))

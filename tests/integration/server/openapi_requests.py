"""A real server conforms to the committed OpenAPI document, tested with random requests: it accepts what the document allows,
refuses what it doesn't allow, and all responses match their schemas."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import use_after_free

from tests.support import described  # noqa: F401 -- registers its hook

ROOT = Path(__file__).parents[3]
DOCUMENT = json.loads((ROOT / "docs" / "reference" / "openapi.json").read_bytes())
schema = schemathesis.openapi.from_dict(DOCUMENT, config=SchemathesisConfig.from_path(ROOT / "schemathesis.toml"))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a server without keys."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
    command = [sys.executable, "-u", "-m", "tocsin", "serve", "--port", "0", "--log-level", "error"]
    folder = tmp_path_factory.mktemp("described")
    with subprocess.Popen(
        [*command, "--data-dir", str(folder)], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        found = re.search(r"http://[\d.:]+", process.stdout.readline())
        assert found is not None
        yield found[0]
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    """Thousands of requests have one connection, and look for no proxy."""
    with requests.Session() as session:
        session.trust_env = False
        yield session


@schema.parametrize()
@settings(
    max_examples=12,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
def test_responses_match_the_openapi_document(case: schemathesis.Case, url: str, session: requests.Session) -> None:
    # A deleted timer stays visible on purpose.
    case.call_and_validate(base_url=url, session=session, excluded_checks=[use_after_free])

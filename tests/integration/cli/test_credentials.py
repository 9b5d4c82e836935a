"""`tocsin credentials`, and credentials in a file that is applied, against a real server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.cli.conftest import Ran

URL = "http://127.0.0.1:1/"
DECLARED = """
managedBy: credentials-test
credentials:
  - name: declared
    type: basic
    hosts: [https://API.example.com, "api.example.com:8443"]
    username: tocsin
    secretFrom: TOCSIN_TEST_PASSWORD
schedules:
  - id: with-credential
    cron: "0 2 * * *"
    callbackUrl: https://api.example.com/x
    credential: declared
"""


def test_credentials_are_put_named_tested_and_deleted(cli: Callable[..., Ran], tmp_path: Path) -> None:
    secret = tmp_path / "token.txt"
    secret.write_text("the-secret-token\n")
    put = cli("credentials", "put", "api", "--type", "bearer", "--secret", f"@{secret}", "--description", "An API")
    assert put.code == 0, put.err
    assert "An API" in put.out and "the-secret-token" not in put.out
    made = cli("timers", "create", URL, "--in", "1h", "--id", "with-credential", "--credential", "api", "--json")
    assert made.json()["credential"] == "api"
    removed = cli("timers", "update", "with-credential", "--credential", "", "--json")
    assert "credential" not in removed.json()
    cli("timers", "delete", "with-credential")
    assert "bearer" in cli("credentials", "list").out
    assert cli("credentials", "get", "api", "--json").json()["hosts"] == []
    assert cli("credentials", "test", "api").code == 0
    failed = cli("credentials", "test", "api", "--url", URL)
    assert (failed.code, "CONNECTION_FAILED" in failed.out) == (1, True)
    refused = cli("credentials", "put", "api", "--type", "jwt", "--secret", "x")
    assert (refused.code, "--secret" in refused.err) == (2, True)
    kept = cli("credentials", "put", "api", "--type", "bearer", "--host", "other.example")
    assert (kept.code, "token" in kept.err) == (1, True)
    assert cli("credentials", "delete", "api").code == 0
    assert cli("credentials", "get", "api").code == 1


def test_declared_credentials_take_their_secrets_from_the_environment(
    cli: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tocsin.yaml"
    file.write_text(DECLARED)
    without = cli("apply", "-f", file)
    assert (without.code, "set TOCSIN_TEST_PASSWORD" in without.err) == (1, True)
    monkeypatch.setenv("TOCSIN_TEST_PASSWORD", "one")
    assert cli("apply", "-f", file).code == 0
    assert cli("apply", "-f", file, "--detailed-exitcode").code == 0
    monkeypatch.delenv("TOCSIN_TEST_PASSWORD")
    assert cli("apply", "-f", file, "--detailed-exitcode").code == 0
    monkeypatch.setenv("TOCSIN_TEST_PASSWORD", "two")
    assert cli("apply", "-f", file, "--detailed-exitcode").code == 4
    assert cli("apply", "-f", file, "--detailed-exitcode").code == 0
    shown = cli("credentials", "get", "declared", "--json").json()
    assert (shown["hosts"], shown["version"]) == (["api.example.com", "api.example.com:8443"], 2)
    pulled = json.loads(cli("pull", "--format", "json").out)
    (entry,) = [each for each in pulled["credentials"] if each["name"] == "declared"]
    assert entry["hosts"] == ["api.example.com", "api.example.com:8443"] and "secretFrom" not in entry
    file.write_text("managedBy: credentials-test\n")
    assert cli("apply", "-f", file, "--prune").code == 0
    assert cli("credentials", "get", "declared").code == 1

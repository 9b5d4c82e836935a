"""`tocsin monitors` against a real server."""

from __future__ import annotations

from collections.abc import Callable

from tests.integration.cli.conftest import Ran

HOOK = "https://ops.example/"


def test_an_empty_url_leaves_a_hook_out_of_the_definition(cli: Callable[..., Ran]) -> None:
    put = ("monitors", "put", "hooked", "--every", "1h", "--json")
    made = cli(*put, "--on-late", HOOK, "--on-recovery", HOOK).json()["monitor"]
    assert (made["onLate"]["url"], made["onRecovery"]["url"]) == (HOOK, HOOK)
    changed = cli(*put, "--on-late", "", "--on-recovery", HOOK)
    assert changed.code == 0, changed.err
    assert not changed.json()["monitor"].get("onLate")
    assert changed.json()["monitor"]["onRecovery"]["url"] == HOOK

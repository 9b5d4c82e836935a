"""The page of namespaces, and the list that the API and the command line show."""

from __future__ import annotations

import asyncio

import pytest

from tests.integration.pages.conftest import Node
from tests.support.damage import damage
from tocsin.cli.app import run


async def test_a_damaged_namespace_is_shown_as_damaged(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    service = node.server.service
    assert service is not None
    await damage(service.namespaces._context.store, await service.namespaces.create("hurt"))
    browser = node.browser()
    shown = (await browser.get("/namespaces")).text
    assert "<span>damaged</span>" in shown and "record can’t be read: " in shown
    # Only the sound one has settings, and an instant at which it was created.
    assert shown.count("<dt>Created</dt>") == 1 and "1970" not in shown
    default, hurt = (await browser.client.post("/api/v1/namespaces/list")).json()["namespaces"]
    assert "damaged" not in default and (hurt["name"], bool(hurt["damaged"])) == ("hurt", True)
    code = await asyncio.to_thread(run, ["namespaces", "list", "--server", node.server.url])
    (row,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith(" hurt ")]
    assert (code, row.split()[:2]) == (0, ["hurt", hurt["damaged"].split()[0]]), row

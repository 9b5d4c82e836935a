"""Stored timers that earlier releases accepted and this one would refuse still work and are shown."""

from __future__ import annotations

import msgspec
import pytest

from tests.integration.pages.conftest import Start
from tocsin.model.timer import Timer

FAR_US = 4_000_000_000_000_000


def timer(timer_id: str, **fields: object) -> Timer:
    return Timer("default", timer_id, FAR_US, "http://127.0.0.1:9/", 0, 0, **fields)  # type: ignore[arg-type]


@pytest.mark.asyncio
async def test_timer_with_a_too_deeply_nested_payload_can_be_shown_and_updated(start: Start) -> None:
    node = await start()
    assert node.server.service is not None
    deep = b"[" * 970 + b"]" * 970
    await node.server.service.create(timer("deep", payload=msgspec.Raw(deep)))
    browser = node.browser()
    name = {"namespace": "default", "timerId": "deep"}
    got = await browser.client.post("/api/v1/timers/get", json=name)
    assert deep in got.content
    listed = await browser.client.post("/api/v1/timers/list", json={"namespace": "default"})
    assert deep in listed.content
    for path in (
        "/timers", "/timers/default/deep", "/timers/edit?namespace=default&id=deep",
        "/timers/new?namespace=default&like=deep", "/timers/export.json", "/timers/export.csv",
    ):  # fmt: skip
        answer = await browser.get(path)
        assert answer.status_code == 200, path
        assert "deep" in answer.text
    changed = await browser.client.post("/api/v1/timers/update", json={**name, "executeAt": "2090-01-01T00:00:00Z"})
    assert changed.status_code == 200, changed.text
    assert deep in changed.content


@pytest.mark.asyncio
async def test_id_with_invisible_characters_is_shown_escaped_and_works(start: Start) -> None:
    node = await start()
    assert node.server.service is not None
    odd = "a\u202eb"
    await node.server.service.create(timer(odd, tags=(odd,)))
    browser = node.browser()
    for path in ("/timers", f"/timers/default/{odd}"):
        page = (await browser.get(path)).text
        assert "a\\u202eb</" in page or "a\\u202eb<" in page
    listed = await browser.client.post("/api/v1/timers/list", json={"namespace": "default", "tags": [odd]})
    assert [found["id"] for found in listed.json()["timers"]] == [odd]
    name = {"namespace": "default", "timerId": odd}
    changed = await browser.client.post("/api/v1/timers/update", json={**name, "method": "PUT"})
    assert changed.status_code == 200, changed.text
    assert (await browser.client.post("/api/v1/timers/delete", json=name)).status_code == 204


@pytest.mark.asyncio
@pytest.mark.parametrize("digits", ["9" * 5_000, "0" * 5_000])
async def test_number_with_thousands_of_digits_is_accepted(start: Start, digits: str) -> None:
    browser = (await start()).browser()
    for path in ("/timers", "/ui/more/timers", "/calls"):
        answer = await browser.get(f"{path}?rows={digits}&until={digits}&order=asc")
        assert answer.status_code == 200, answer.text[:200]

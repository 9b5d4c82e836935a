"""What former releases accepted and is refused now goes on working, and is shown."""

from __future__ import annotations

import msgspec
import pytest

from tests.integration.ui.conftest import Start
from tocsin.model.timer import Timer

FAR_US = 4_000_000_000_000_000


def timer(timer_id: str, **fields: object) -> Timer:
    return Timer("default", timer_id, FAR_US, "http://127.0.0.1:9/", 0, 0, **fields)  # type: ignore[arg-type]


@pytest.mark.asyncio
async def test_a_payload_that_is_nested_too_deep_can_be_seen_and_its_timer_changed(start: Start) -> None:
    node = await start()
    assert node.server.service is not None
    deep = b"[" * 970 + b"]" * 970
    await node.server.service.create(timer("deep", payload=msgspec.Raw(deep)))
    visitor = node.visitor()
    name = {"namespace": "default", "timerId": "deep"}
    got = await visitor.client.post("/api/v1/timers/get", json=name)
    assert deep in got.content
    listed = await visitor.client.post("/api/v1/timers/list", json={"namespace": "default"})
    assert deep in listed.content
    for path in (
        "/timers", "/timers/default/deep", "/timers/edit?namespace=default&id=deep",
        "/timers/new?namespace=default&like=deep", "/timers/export.json", "/timers/export.csv",
    ):  # fmt: skip
        answer = await visitor.get(path)
        assert answer.status_code == 200, path
        assert "deep" in answer.text
    changed = await visitor.client.post("/api/v1/timers/update", json={**name, "executeAt": "2090-01-01T00:00:00Z"})
    assert changed.status_code == 200, changed.text
    assert deep in changed.content

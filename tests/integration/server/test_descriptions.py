"""Descriptions of timers and schedules, on a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.server.conftest import serving
from tests.support.calls import Api

URL = "http://127.0.0.1:1/"
WORDS = "Erinnert an die Rechnung \u201e17\u201c \u2013 \U0001f514"


@pytest.mark.parametrize("store", ["sqlite", "memory"])
async def test_descriptions_are_kept_changed_and_removed(tmp_path: Path, store: str) -> None:
    flags = ["--store", "memory://"] if store == "memory" else []
    async with serving(tmp_path, "--no-agent", *flags) as server:
        api = Api(server)
        assert (await api.create("t", URL, delay="1h", description=WORDS))["description"] == WORDS
        others = [{"namespace": "default", "id": each, "delay": "1h", "callbackUrl": URL} for each in ("u", "v")]
        _, made = await api("timers/batch/create", timers=[{**others[0], "description": "u"}, others[1]])
        assert [each["timer"].get("description") for each in made["results"]] == ["u", None]
        beats = {"namespace": "default", "id": "s", "callbackUrl": URL, "every": "1h", "description": WORDS}
        await api("schedules/create", **beats)
        if store == "sqlite":
            await server.stop()
            await server.start()
        name = {"namespace": "default", "timerId": "t"}
        _, page = await api("timers/list", namespace="default")
        assert {each["id"]: each.get("description") for each in page["timers"]} == {"t": WORDS, "u": "u", "v": None}
        _, timer = await api("timers/update", **name, tags=["a"])
        assert timer["description"] == WORDS
        _, timer = await api("timers/update", **name, description="x" * 200)
        assert timer["description"] == "x" * 200
        for bad in ("", "x" * 201, "two\nlines", "joined\u2063words"):
            status, problem = await api("timers/update", **name, description=bad)
            assert (status, problem["errors"][0]["path"]) == (400, "description"), bad
        _, timer = await api("timers/update", **name, description=None)
        assert "description" not in timer
        _, page = await api("schedules/list", namespace="default")
        assert [each["description"] for each in page["schedules"]] == [WORDS]
        named = {"namespace": "default", "scheduleId": "s"}
        _, schedule = await api("schedules/update", **named, description="y")
        assert schedule["description"] == "y"
        _, schedule = await api("schedules/update", **named, description=None)
        assert "description" not in schedule
        # A create states the whole schedule.
        _, schedule = await api("schedules/create", **beats)
        assert schedule["description"] == WORDS

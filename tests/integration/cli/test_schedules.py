"""`tocsin schedules` against a real server, with a scripted receiver."""

from __future__ import annotations

import time

import pytest

from tests.integration.cli.conftest import answer, problem
from tests.support.cases import each
from tests.support.patience import PATIENCE_S
from tocsin.cli.receiver import ReceiverResponse


def until(condition):
    """Polls, since commands have no notifications."""
    ends_at = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < ends_at
        time.sleep(0.02)


def test_a_schedule_is_created_paused_triggered_changed_and_deleted(cli, scripted):
    scripted.script = [ReceiverResponse(200)] * 3
    rule = ("--cron", "0 9 * * MON-FRI", "--time-zone", "Europe/Berlin")
    options = ("--catch-up", "all", "--jitter", "1m", "--payload", '{"a": 1}', "--retry-attempts", "3")
    created = cli("schedules", "create", "life", scripted.url, *rule, *options)
    assert created.code == 0, created.err
    assert "Every weekday at 09:00, Europe/Berlin" in created.out
    again = cli("schedules", "create", "life", scripted.url, *rule, *options, "--json")
    assert (again.code, "nothing was written" in again.err) == (0, True)
    assert cli("schedules", "pause", "life").code == 0
    assert cli("schedules", "trigger", "life").code == 0
    until(lambda: cli("schedules", "get", "life", "--json").json()["counts"] == {"completed": 1})
    shown = cli("schedules", "history", "life")
    assert "trigger" in shown.out
    assert "completed" in shown.out
    listed = cli("schedules", "list")
    assert "paused" in listed.out
    assert "life" in cli("schedules", "list", "--status", "paused").out
    assert "life" not in cli("schedules", "list", "--status", "active").out
    updated = cli("schedules", "update", "life", "--every", "1h", "--max-occurrences", "5", "--json")
    assert updated.code == 0, updated.err
    assert (updated.json()["sentence"], updated.json()["payload"]) == ("Every hour of elapsed time", {"a": 1})
    cleared = cli("schedules", "update", "life", "--clear", "max-occurrences", "--json").json()
    assert "maxOccurrences" not in cleared
    assert cli("schedules", "resume", "life").code == 0
    past = ("--after", "2020-01-01T00:00:00Z", "--before", "2020-01-01T01:00:00Z")
    assert cli("schedules", "backfill", "life", *past).code == 0
    assert cli("schedules", "delete", "life").code == 0
    refused = cli("schedules", "pause", "life")
    assert (refused.code, "SCHEDULE_ENDED" in refused.err) == (1, True)


def test_preview_shows_what_the_clocks_show(cli):
    shown = cli("schedules", "preview", "--cron", "30 2 * * *", "--time-zone", "Europe/Berlin",
                "--start", "2099-03-28T12:00:00Z", "--count", "2")  # fmt: skip
    assert shown.code == 0, shown.err
    assert "Every day at 02:30, Europe/Berlin" in shown.out
    assert "Sun 2099-03-29 03:00:00 CEST" in shown.out
    assert cli("schedules", "create", "seen", "http://127.0.0.1:9/", "--every", "1h").code == 0
    assert len(cli("schedules", "preview", "seen", "--count", "4", "--json").json()["instants"]) == 4


@each(
    "arguments, code, text",
    [
        (("create", "x", "http://127.0.0.1:9/"), 2, "give exactly one of --cron"),
        (("create", "x", "http://127.0.0.1:9/", "--cron", "@daily", "--every", "5m"), 2, "--cron and --every conflict"),
        (("create", "x", "http://127.0.0.1:9/", "--cron", "61 * * * *"), 1, "cron: "),
        (("create", "x", "http://127.0.0.1:9/", "--every", "5x"), 2, "--every"),
        (("update", "x"), 2, "no change given"),
        (("update", "x", "--clear", "cron"), 2, "--clear: 'cron' is not one of"),
        (("update", "x", "--clear", "end", "--end", "2099-01-01T00:00:00Z"), 2, "--clear end conflicts with --end"),
        (("preview",), 2, "give an ID, --cron or --every"),
        (("preview", "x", "--every", "5m"), 2, "conflict"),
        (("get", "nobody"), 1, "SCHEDULE_NOT_FOUND"),
    ],
)
def test_refusals_name_the_option_and_the_remedy(cli, arguments, code, text):
    ran = cli("schedules", *arguments)
    assert ran.code == code
    assert text in ran.err


PAST = ("--after", "2020-01-01T00:00:00Z", "--before", "2020-01-01T01:00:00Z")


@pytest.mark.parametrize("command", [("trigger", "s"), ("backfill", "s", *PAST)], ids=["trigger", "backfill"])
class TestWhatIsDoneAgainByEachRequest:
    @pytest.mark.parametrize("refusal", [problem(503, "SHARD_UNAVAILABLE", "moving"), ReceiverResponse(503, b"proxy")])
    def test_it_is_not_repeated_if_its_outcome_is_unknown(self, tocsin, scripted, monkeypatch, command, refusal):
        monkeypatch.setattr("time.sleep", lambda pause_s: None)
        scripted.script = [refusal]
        ran = tocsin("schedules", *command, "--server", scripted.url)
        assert (ran.code, len(scripted.received)) == (1, 1)
        assert "it may have been done, so look before you repeat the command" in ran.err

    @pytest.mark.parametrize(
        "refusal", [problem(503, "REQUEST_EXPIRED"), problem(503, "NO_ROOM_FOR_BODY"), problem(429, "OVERLOADED")]
    )
    def test_it_is_repeated_if_nothing_was_done(self, tocsin, scripted, monkeypatch, command, refusal):
        monkeypatch.setattr("time.sleep", lambda pause_s: None)
        scripted.script = [refusal, answer({"scheduleId": "s", "nextInstants": []})]
        ran = tocsin("schedules", *command, "--server", scripted.url)
        assert (ran.code, len(scripted.received)) == (0, 2), ran.err

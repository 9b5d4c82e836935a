"""What the operations on schedules accept, refuse and answer, over HTTP."""

from __future__ import annotations

from typing import Any

from api_server import Served
from tests.support.cases import each

from tocsin.model.access import Role

SCHEDULE = {
    "namespace": "default",
    "id": "standup",
    "callbackUrl": "https://a.example/x",
    "cron": "0 9 * * MON-FRI",
    "timeZone": "Europe/Berlin",
}
NAMED = {"namespace": "default", "scheduleId": "standup"}


def bad_fields(answer: Any) -> set[str]:
    assert answer.status_code == 400, answer.text
    return {error["path"] for error in answer.json()["errors"]}


def test_created_schedule_is_answered_with_its_definition(server: Served) -> None:
    sent = {
        **SCHEDULE,
        "startAt": "2027-01-01T00:00:00Z",
        "endAt": "2028-01-01T00:00:00Z",
        "maxOccurrences": 10,
        "jitter": "30s",
        "catchUp": "all",
        "catchUpWindow": "2h",
        "pauseAfterFailures": 3,
        "expireAfter": "15m",
        "description": "Wakes the team",
        "payload": {"room": "blue"},
        "headers": {"authorization": "Bearer x"},
        "tags": ["team"],
    }
    answer = server.post("schedules/create", sent)
    assert answer.status_code == 200, answer.text
    schedule = answer.json()
    for name, value in sent.items():
        assert schedule[name] == ({"authorization": "[redacted]"} if name == "headers" else value), name
    assert schedule["status"] == "active"
    assert schedule["sentence"] == "Every weekday at 09:00, Europe/Berlin"
    assert len(schedule["nextInstants"]) == 3
    assert all("T08:00:" in at for at in schedule["nextInstants"])
    assert server.post("schedules/get", NAMED).json()["scheduleUuid"] == schedule["scheduleUuid"]


def test_definition_without_options_has_no_optional_fields(server: Served) -> None:
    sent = {"namespace": "default", "id": "beat", "callbackUrl": "https://a.example/x", "every": "90m"}
    schedule = server.post("schedules/create", sent).json()
    assert (schedule["every"], schedule["sentence"]) == ("1h30m", "Every 90 minutes")
    assert (schedule["catchUp"], schedule["jitter"], schedule["pauseAfterFailures"]) == ("latest", "0s", 0)
    absent = {"cron", "timeZone", "anchor", "startAt", "endAt", "maxOccurrences", "catchUpWindow", "lastOccurrence"}
    assert not absent & schedule.keys()


@each(
    "changed, fields",
    [
        ({"cron": "61 * * * *"}, {"cron"}),
        ({"cron": "0 0 * * \u017fUN"}, {"cron"}),
        ({"cron": "0 0 29 2 */8#5"}, {"cron"}),
        ({"timeZone": "Mars/Olympus", "cron": "0 24 * * *"}, {"timeZone", "cron"}),
        ({"every": "5m"}, {"every"}),
        ({"cron": None}, {"cron"}),
        ({"anchor": "2027-01-01T00:00:00Z"}, {"anchor"}),
        ({"startAt": "tomorrow", "jitter": "long", "callbackUrl": "ftp://x"}, {"startAt", "jitter", "callbackUrl"}),
        ({"endAt": "2020-01-01T00:00:00Z"}, {"endAt"}),
        ({"startAt": "2028-01-01T00:00:00Z", "endAt": "2027-01-01T00:00:00Z"}, {"endAt"}),
        ({"maxOccurrences": 0, "pauseAfterFailures": -1}, {"maxOccurrences", "pauseAfterFailures"}),
        ({"jitter": "400d", "catchUpWindow": "400d"}, {"jitter", "catchUpWindow"}),
        ({"catchUp": "some"}, {"catchUp"}),
        ({"executeAt": "2027-01-01T00:00:00Z"}, {"executeAt"}),
        ({"id": "", "namespace": "a b"}, {"id", "namespace"}),
    ],
)
def test_bad_definition_is_refused_by_the_names_of_its_fields(
    server: Served, changed: dict[str, Any], fields: set[str]
) -> None:
    assert bad_fields(server.post("schedules/create", {**SCHEDULE, **changed})) == fields


@each(
    "sent, fields",
    [
        ({}, {""}),
        ({"cron": "* * * * *", "every": "5m"}, {"every"}),
        ({"startAt": "x", "catchUpWindow": "y"}, {"startAt", "catchUpWindow"}),
        ({"payload": 1, "body": {"text": "x"}}, {"body"}),
        ({"payload": 1, "method": "GET"}, {"payload"}),
        ({"scheduleId": ""}, {"scheduleId"}),
    ],
)
def test_bad_update_is_refused_by_the_names_of_its_fields(
    server: Served, sent: dict[str, Any], fields: set[str]
) -> None:
    assert bad_fields(server.post("schedules/update", {**NAMED, **sent})) == fields


def test_update_that_never_matches_is_refused_before_it_is_written(server: Served) -> None:
    assert server.post("schedules/create", SCHEDULE).status_code == 200
    assert bad_fields(server.post("schedules/update", {**NAMED, "cron": "*/1 2 * 3 0L"})) == {"cron"}
    assert server.post("schedules/get", NAMED).json()["cron"] == SCHEDULE["cron"]


def test_too_large_payload_has_a_status_of_its_own(server: Served) -> None:
    answer = server.post("schedules/create", {**SCHEDULE, "payload": "x" * 110_000})
    assert (answer.status_code, answer.json()["error"]) == (413, "PAYLOAD_TOO_LARGE")


@each("operation", ["get", "update", "pause", "resume", "trigger", "backfill", "preview", "history", "delete"])
def test_unknown_schedule_is_not_found(server: Served, operation: str) -> None:
    more = {
        "update": {"jitter": "1s"},
        "backfill": {"after": "2026-01-01T00:00:00Z", "before": "2026-01-02T00:00:00Z"},
    }
    sent = {"namespace": "default", "scheduleId": "nobody", **more.get(operation, {})}
    answer = server.post(f"schedules/{operation}", sent)
    assert (answer.status_code, answer.json()["error"]) == (404, "SCHEDULE_NOT_FOUND")


@each(
    "sent, instants, sentence",
    [
        (
            # The clocks skip 02:30 on 29 March.
            {"cron": "30 2 * * *", "timeZone": "Europe/Berlin", "startAt": "2099-03-28T00:00:00Z", "count": 3},
            ["2099-03-28T01:30:00Z", "2099-03-29T01:00:00Z", "2099-03-30T00:30:00Z"],
            "Every day at 02:30, Europe/Berlin",
        ),
        (
            {"every": "1h30m", "anchor": "2020-01-01T00:15:00Z", "startAt": "2099-01-01T00:00:00Z", "count": 2},
            ["2099-01-01T00:15:00Z", "2099-01-01T01:45:00Z"],
            "Every 90 minutes",
        ),
        (
            {"cron": "@daily", "startAt": "2099-01-01T00:00:00Z", "endAt": "2099-01-02T00:00:00Z"},
            ["2099-01-01T00:00:00Z"],
            "Every day at 00:00, UTC",
        ),
    ],
)
def test_preview_shows_the_next_instants(
    server: Served, sent: dict[str, Any], instants: list[str], sentence: str
) -> None:
    answer = server.post("schedules/preview", sent)
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"instants": instants, "sentence": sentence, "excluded": []}


def test_preview_of_a_schedule_shows_its_own_instants(server: Served) -> None:
    schedule = server.post("schedules/create", {**SCHEDULE, "jitter": "1h"}).json()
    preview = server.post("schedules/preview", {**NAMED, "count": 100}).json()
    assert (len(preview["instants"]), preview["sentence"]) == (100, schedule["sentence"])
    assert preview["instants"][:3] == schedule["nextInstants"]


@each(
    "sent, fields",
    [
        ({}, {"cron"}),
        ({"cron": "x", "timeZone": "UTC", "count": 101}, {"cron", "count"}),
        ({"every": "0s"}, {"every"}),
        ({"every": "5m", "timeZone": "Europe/Berlin"}, {"timeZone"}),
        ({"scheduleId": "a"}, {"namespace"}),
        ({"namespace": "default"}, {"scheduleId"}),
        ({"namespace": "default", "scheduleId": "a", "every": "1m"}, {"scheduleId"}),
    ],
)
def test_bad_preview_is_refused_by_the_names_of_its_fields(
    server: Served, sent: dict[str, Any], fields: set[str]
) -> None:
    assert bad_fields(server.post("schedules/preview", sent)) == fields


def test_schedules_are_listed_by_id_in_pages(server: Served) -> None:
    for name in ("c", "a", "b"):
        assert server.post("schedules/create", {**SCHEDULE, "id": name}).status_code == 200
    first = server.post("schedules/list", {"namespace": "default", "limit": 2}).json()
    second = server.post("schedules/list", {"namespace": "default", "cursor": first["nextCursor"]}).json()
    assert [schedule["id"] for schedule in first["schedules"] + second["schedules"]] == ["a", "b", "c"]
    assert "nextCursor" not in second
    for status, ids in (("paused", []), (["paused", "active"], ["a", "b", "c"]), ([], ["a", "b", "c"])):
        page = server.post("schedules/list", {"namespace": "default", "status": status}).json()
        assert [schedule["id"] for schedule in page["schedules"]] == ids, status
    for status, path in (("ended", "status"), (["paused", "pending"], "status[1]")):
        answer = server.post("schedules/list", {"namespace": "default", "status": status})
        assert answer.json()["errors"] == [{"path": path, "reason": "must be one of active, paused"}]
    assert bad_fields(server.post("schedules/list", {"namespace": "default", "limit": 0, "cursor": ""})) == {
        "limit",
        "cursor",
    }


READS, WRITES = ("get", "list", "preview", "history"), ("create", "update", "pause", "resume", "trigger", "backfill")


def test_a_key_reaches_schedules_of_its_namespaces_with_its_role(server: Served) -> None:
    reader, elsewhere = server.keys.add("reads", Role.READ, "default"), server.keys.add("other", Role.ADMIN, "other")
    times = {"after": "2026-01-01T00:00:00Z", "before": "2026-01-02T00:00:00Z"}
    sent = {"create": SCHEDULE, "list": {"namespace": "default"}, "update": {**NAMED, "jitter": "1s"}}
    sent["backfill"] = {**NAMED, **times}
    for operation in (*READS, *WRITES, "delete"):
        body = sent.get(operation, NAMED)
        refused = server.post(f"schedules/{operation}", body, headers=elsewhere)
        assert (refused.status_code, refused.json()["error"]) == (403, "FORBIDDEN"), operation
        read = server.post(f"schedules/{operation}", body, headers=reader)
        assert (read.status_code == 403) == (operation not in READS), operation
    # A definition belongs to no namespace.
    assert server.post("schedules/preview", {"every": "1h"}, headers=elsewhere).status_code == 200

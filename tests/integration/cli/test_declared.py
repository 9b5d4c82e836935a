"""`tocsin apply` and `tocsin pull` against `tocsin serve`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec import UNSET

from tests.integration.cli.conftest import Ran
from tests.support.patience import PATIENCE_S
from tocsin.cli.client import Client
from tocsin.cli.declared.document import Document, read
from tocsin.cli.declared.plan import Outcome, Plan, carry_out, plan

HOOK = "https://shop.example/hooks/report"
EVERYTHING = """
managedBy: NAME
namespace: NAME
x-policy: &policy {maxAttempts: 3}
namespaces:
  - name: NAME
    retention: 7d
    retryPolicy: *policy
    limits: {parallelism: 5}
    quotas: {pending: 1000}
    onFailure: {url: "https://ops.example/", headers: {authorization: Bearer of-the-namespace}}
flows:
  - match: "customer:"
    perKey: {rate: {count: 100, per: 60s}, burst: 10}
    paused: true
schedules:
  - id: nightly
    cron: "0 2 * * *"
    timeZone: Europe/Berlin
    startAt: 2026-01-01T00:00:00+01:00
    callbackUrl: https://shop.example/hooks/report?token=of-the-url
    headers: {x-api-key: of-the-header, x-plain: "yes"}
    payload: {report: sales, version: 1.50, day: 2027-01-31, answer: no, big: 12345678901234567890123}
    retryPolicy: *policy
    tags: [reports]
  - id: beat
    every: 90m
    callbackUrl: https://shop.example/hooks/beat
    paused: true
  - id: over
    every: 24h
    endAt: 2020-01-01T00:00:00Z
    callbackUrl: https://shop.example/hooks/over
"""


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file and returns its path; a dict as JSON."""

    def write(text: str | dict[str, Any], name: str = "tocsin.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        return path

    return write


def schedules(name: str, ids: str, **more: Any) -> dict[str, Any]:
    """A declaration of a namespace with a schedule for each letter."""
    fields = {name: value for name, value in {"every": "1h", "callbackUrl": HOOK, **more}.items() if value is not UNSET}
    listed = [{"id": each, **fields} for each in ids]
    return {"managedBy": name, "namespace": name, "namespaces": [{"name": name}], "schedules": listed}


def planned(client: Client, declared: dict[str, Any], *, prune: bool = False) -> tuple[Document, Plan]:
    """The declaration and its plan by what the server has now."""
    document = read(json.dumps(declared), "test.json")
    return document, plan(client, document, prune=prune, take_over=False)


def carried_out(client: Client, made: tuple[Document, Plan]) -> Outcome:
    """What becomes of the plan."""
    return carry_out(client, made[1], made[0].managed_by)


@pytest.mark.usefixtures("cli")
class TestOnce:
    """One file, applied again and again."""

    def test_a_file_is_planned_applied_and_then_as_it_should_be(self, cli: Callable[..., Ran], file: Any) -> None:
        path = file(EVERYTHING.replace("NAME", "all-kinds"))
        dry = cli("apply", "-f", path, "--dry-run", "--detailed-exitcode")
        assert dry.code == 4
        assert "4 to create, 0 to change, 0 to delete; 1 unchanged." in dry.out
        assert "+ schedule all-kinds/nightly" in dry.out
        assert "of-the" not in dry.out
        assert "\x1b" not in dry.out
        assert "all-kinds" not in cli("namespaces", "list").out
        applied = cli("apply", "-f", path)
        assert (applied.code, "Made 4 of 4 changes." in applied.err) == (0, True), applied.err
        assert cli("apply", "-f", path, "--detailed-exitcode").out == "No changes; 5 checked.\n"

    def test_the_second_time_nothing_is_written(self, cli: Callable[..., Ran], file: Any) -> None:
        path = file(EVERYTHING.replace("NAME", "idem"))
        assert cli("apply", "-f", path).code == 0

        def everything() -> list[Any]:
            shown = [cli("audit", "--json", "--limit", "1000").json()]
            for command in (
                ("namespaces", "list"),
                ("flows", "list", "-n", "idem"),
                ("schedules", "list", "-n", "idem"),
            ):
                found = cli(*command, "--json").json()
                for rows in found.values():
                    for row in rows if isinstance(rows, list) else ():
                        row.pop("nextInstants", None)
                shown.append(found)
            return shown

        before = everything()
        assert cli("apply", "-f", path, "--prune", "--detailed-exitcode").code == 0
        assert everything() == before
        schedule = cli("schedules", "get", "nightly", "-n", "idem", "--json").json()
        assert (schedule["version"], schedule["managedBy"]) == (1, "idem")
        assert schedule["payload"]["big"] == 12345678901234567890123
        assert schedule["payload"]["day"] == "2027-01-31"

    @pytest.mark.parametrize("secret", ["of-the-namespace", "of-the-url", "of-the-header"])
    def test_a_changed_secret_is_noticed_and_not_shown(self, cli: Callable[..., Ran], file: Any, secret: str) -> None:
        text = EVERYTHING.replace("NAME", f"with-{secret[3:]}")
        assert cli("apply", "-f", file(text)).code == 0
        changed = file(text.replace(secret, "another-secret"))
        dry = cli("apply", "-f", changed, "--dry-run", "--detailed-exitcode")
        assert dry.code == 4
        assert "(a secret in it differs)" in dry.out
        assert "another-secret" not in dry.out
        assert cli("apply", "-f", changed).code == 0
        assert cli("apply", "-f", changed, "--detailed-exitcode").code == 0
        # Beside a change that shows.
        both = file(
            text.replace(secret, "a-third-secret").replace("retention:", "history: failures\n    retention:", 1)
        )
        assert cli("apply", "-f", both).code == 0
        assert cli("apply", "-f", both, "--detailed-exitcode").code == 0

    def test_what_the_file_no_longer_states_is_as_by_default(self, cli: Callable[..., Ran], file: Any) -> None:
        text = EVERYTHING.replace("NAME", "less")
        assert cli("apply", "-f", file(text)).code == 0
        lines = ("limits:", "quotas:", "onFailure:", "tags:", "headers:", "retryPolicy:", "paused:", "retention:")
        kept = "\n".join(line for line in text.splitlines() if not line.strip().startswith(lines))
        changed = cli("apply", "-f", file(kept), "--json").json()
        assert {(each["kind"], each["action"], each["done"]) for each in changed["changes"]} == {
            ("namespace", "change", True),
            ("schedule", "change", True),
        }
        namespace = next(
            each for each in cli("namespaces", "list", "--json").json()["namespaces"] if each["name"] == "less"
        )
        assert not namespace.keys() & {"limits", "quotas", "onFailure"}
        # Those two stay as they are.
        assert namespace["retention"] == "7d"
        assert cli("schedules", "get", "beat", "-n", "less", "--json").json()["status"] == "paused"
        assert cli("apply", "-f", file(kept), "--detailed-exitcode").code == 0
        assert cli("apply", "-f", file(kept.replace("id: beat", "id: beat\n    paused: false"))).code == 0
        assert cli("schedules", "get", "beat", "-n", "less", "--json").json()["status"] == "active"

    def test_what_was_pulled_changes_nothing_and_creates_the_same_elsewhere(
        self, cli: Callable[..., Ran], file: Any
    ) -> None:
        assert cli("apply", "-f", file(EVERYTHING.replace("NAME", "pulled"))).code == 0
        for name in ("out.yaml", "out.json"):
            path = file("", name)
            assert cli("pull", "-n", "pulled", "-o", path).code == 0
            assert cli("apply", "-f", path, "--detailed-exitcode").code == 1, "another file manages what is there"
            marked = cli("pull", "-n", "pulled", "--managed-by", "pulled", "-o", path)
            assert (marked.code, marked.err) == (0, "Pulled 4 objects.\n")
            assert cli("apply", "-f", path, "--detailed-exitcode").code == 0
        entry = json.loads(path.read_text())["schedules"][0]
        shown = cli("schedules", "get", "beat", "-n", "pulled", "--json").json()
        # An interval keeps its beat, though it counts from the schedule's creation.
        assert (entry["id"], entry["every"], entry["anchor"], entry["paused"]) == (
            "beat",
            "1h30m",
            shown["createdAt"],
            True,
        )
        elsewhere = path.read_text().replace('"pulled"', '"copied"')
        refused = cli("apply", "-f", file(elsewhere, "elsewhere.json"))
        # Secrets are not in the file.
        assert (refused.code, "has [redacted] in place of a secret" in refused.err) == (1, True)
        cleared = elsewhere.replace("[redacted]", "given")
        assert cli("apply", "-f", file(cleared, "elsewhere.json")).code == 0
        assert cli("schedules", "get", "beat", "-n", "copied", "--json").json()["anchor"] == shown["createdAt"]

    def test_an_ended_schedule_stays_ended(self, cli: Callable[..., Ran], file: Any) -> None:
        path = file(
            schedules(
                "ended",
                "a",
                maxOccurrences=1,
                every="1s",
                callbackUrl="http://127.0.0.1:9/",
                retryPolicy={"maxAttempts": 1},
            )
        )
        assert cli("apply", "-f", path).code == 0
        until = time.monotonic() + PATIENCE_S
        while cli("schedules", "get", "a", "-n", "ended", "--json").json()["status"] != "ended":
            assert time.monotonic() < until
        assert cli("apply", "-f", path, "--detailed-exitcode").code == 0
        # Also one that was deleted before its end is created again.
        path = file(schedules("ended", "b", endAt="2099-01-01T00:00:00Z"))
        assert cli("apply", "-f", path).code == 0
        assert cli("schedules", "delete", "b", "-n", "ended").code == 0
        assert cli("apply", "-f", path, "--detailed-exitcode").code == 4
        assert cli("schedules", "get", "b", "-n", "ended", "--json").json()["status"] == "active"


class TestCalendars:
    """Calendars, which schedules of the same file name."""

    def test_they_are_written_before_the_schedules_that_name_them_and_pruned_after(
        self, cli: Callable[..., Ran], file: Any
    ) -> None:
        declared = schedules("dates", "a", every=UNSET, cron="0 9 * * *", skip=["holidays"])
        # Its instants end, so the plan asks the server about it, which does not have the calendar yet.
        declared["schedules"][0]["endAt"] = "2099-12-31T00:00:00Z"
        calendar = {
            "name": "holidays", "timeZone": "Europe/Berlin", "dates": ["2099-12-25", "2099-01-01"],
            "ranges": [{"first": "2099-12-27", "last": "2099-12-31"}], "weekdays": ["SUN", "SAT"], "description": "Off",
        }  # fmt: skip
        path = file({**declared, "calendars": [calendar]})
        applied = cli("apply", "-f", path, "--json")
        assert applied.code == 0, applied.err
        assert [(each["kind"], each["done"]) for each in applied.json()["changes"]] == [
            ("namespace", True), ("calendar", True), ("schedule", True),
        ]  # fmt: skip
        assert cli("apply", "-f", path, "--prune", "--detailed-exitcode").out == "No changes; 3 checked.\n"
        stored = cli("calendars", "get", "holidays", "-n", "dates", "--json").json()
        assert (stored["version"], stored["managedBy"], stored["description"]) == (1, "dates", "Off")
        pulled = cli("pull", "-n", "dates", "--format", "json").json()["calendars"]
        assert pulled == [
            {"namespace": "dates", **calendar, "dates": sorted(calendar["dates"]), "weekdays": ["SAT", "SUN"]}
        ]
        # Its weekdays are the default again.
        path = file({**declared, "calendars": [{"name": "holidays", "dates": ["2099-01-01"]}]})
        changed = cli("apply", "-f", path, "--json").json()["changes"]
        assert [(each["name"], each["fields"]["weekdays"]["after"]) for each in changed] == [("holidays", [])]
        pruned = cli("apply", "-f", file(schedules("dates", "")), "--prune", "--json").json()
        assert [(each["action"], each["kind"], each["done"]) for each in pruned["changes"]] == [
            ("delete", "schedule", True), ("delete", "calendar", True),
        ]  # fmt: skip

    def test_a_change_by_hand_is_not_overwritten_by_a_plan_made_before(
        self, cli: Callable[..., Ran], node: str
    ) -> None:
        declared = {**schedules("dates-race", ""), "calendars": [{"name": "off", "weekdays": ["SUN"]}]}
        with Client(node) as client:
            assert not carried_out(client, planned(client, declared)).refused
            declared["calendars"][0]["weekdays"] = ["SAT"]
            made = planned(client, declared)
            assert cli("calendars", "put", "off", "--weekday", "MON", "-n", "dates-race").code == 0
            outcome = carried_out(client, made)
        assert [(change.title, "VERSION_CONFLICT" in reason) for change, reason in outcome.refused] == [
            ("calendar dates-race/off", True)
        ]

    def test_bad_dates_are_named(self, cli: Callable[..., Ran], file: Any) -> None:
        refused = cli("apply", "-f", file({"calendars": [{"name": "a", "dates": ["2099-02-29"]}, {"name": "b"}]}))
        assert refused.code == 2
        assert "calendars[0].dates[0]: is no date" in refused.err
        assert "calendars[1]: the calendar has no dates" in refused.err


class TestPrune:
    """What is no longer in the file."""

    def test_only_what_carries_the_files_name_is_deleted(self, cli: Callable[..., Ran], file: Any) -> None:
        both = {**schedules("pruned", "ab"), "flows": [{"match": "x", "total": {"parallelism": 1}}]}
        both["namespaces"].append({"name": "pruned-too"})
        assert cli("apply", "-f", file(both)).code == 0
        assert cli("apply", "-f", file(schedules("pruned-2", "z"))).code == 0
        assert cli("schedules", "create", "by-hand", HOOK, "--every", "1h", "-n", "pruned").code == 0
        assert cli("flows", "put", "by-hand", "--total-parallelism", "1", "-n", "pruned").code == 0
        rest = file(schedules("pruned", "a"))
        assert cli("apply", "-f", rest, "--detailed-exitcode").code == 0, "without --prune it stays"
        pruned = cli("apply", "-f", rest, "--prune", "--json").json()
        assert [
            (each["action"], each["kind"], each.get("id") or each.get("match") or each["name"])
            for each in pruned["changes"]
        ] == [
            ("delete", "schedule", "b"),
            ("delete", "flow", "x"),
            ("delete", "namespace", "pruned-too"),
        ]
        left = cli("schedules", "list", "-n", "pruned", "--json").json()["schedules"]
        assert [each["id"] for each in left] == ["a", "by-hand"]
        assert [each["match"] for each in cli("flows", "list", "-n", "pruned", "--json").json()["flows"]] == ["by-hand"]
        assert cli("schedules", "get", "z", "-n", "pruned-2").code == 0
        assert cli("apply", "-f", rest, "--prune", "--detailed-exitcode").code == 0

    def test_what_has_changed_since_the_plan_is_not_deleted(
        self, cli: Callable[..., Ran], file: Any, node: str
    ) -> None:
        assert cli("apply", "-f", file(schedules("spared", "ab"))).code == 0
        with Client(node) as client:
            made = planned(client, schedules("spared", "a"), prune=True)
            assert cli("schedules", "update", "b", "--cron", "@daily", "-n", "spared").code == 0
            outcome = carried_out(client, made)
        assert [(change.title, "VERSION_CONFLICT" in reason) for change, reason in outcome.refused] == [
            ("schedule spared/b", True)
        ]
        assert cli("schedules", "get", "b", "-n", "spared", "--json").json()["cron"] == "@daily"

    def test_a_monitor_that_somebody_has_deleted_since_the_plan_was_changed_by_somebody_else(
        self, cli: Callable[..., Ran], node: str
    ) -> None:
        declared = {**schedules("overtaken", ""), "monitors": [{"id": "job", "every": "1h"}]}
        with Client(node) as client:
            assert not carried_out(client, planned(client, declared)).refused
            made = planned(client, schedules("overtaken", ""), prune=True)
            assert cli("monitors", "delete", "job", "-n", "overtaken").code == 0
            ((change, reason),) = carried_out(client, made).refused
        assert (change.title, "MONITOR_NOT_FOUND" in reason) == ("monitor overtaken/job", True)
        assert "Somebody else has changed it" in reason

    def test_a_file_without_a_name_can_prune_nothing(self, cli: Callable[..., Ran], file: Any) -> None:
        refused = cli("apply", "-f", file({"schedules": []}), "--prune")
        assert (refused.code, "add managedBy" in refused.err) == (2, True)


class TestOthers:
    """Files and people that want something else."""

    def test_two_files_at_once_lose_no_update(self, cli: Callable[..., Ran], node: str) -> None:
        flow = {"match": "k", "total": {"parallelism": 1}}
        with Client(node) as client:
            one, other = schedules("at-once", "ab"), {**schedules("at-once", "bc"), "managedBy": "other"}
            one["flows"], other["flows"] = [flow], [{**flow, "total": {"parallelism": 2}}]
            other["schedules"][0]["every"] = "2h"
            plans = planned(client, one), planned(client, other)
            first, second = (carried_out(client, made) for made in plans)
            assert not first.refused
            assert [change.title for change, _ in second.refused] == [
                "namespace at-once",
                "flow at-once/k",
                "schedule at-once/b",
            ]
            assert all("run apply again" in reason for _, reason in second.refused)
            later = planned(client, other)[1]
        assert [each.path for each in later.refused] == ["namespaces[0]", "flows[0]", "schedules[0]"]
        assert "is managed by 'at-once'" in later.refused[0].reason
        kept = cli("schedules", "get", "b", "-n", "at-once", "--json").json()
        assert (kept["every"], kept["managedBy"]) == ("1h", "at-once")
        flows = cli("flows", "list", "-n", "at-once", "--json").json()["flows"]
        assert (flows[0]["total"]["parallelism"], flows[0]["managedBy"]) == (1, "at-once")

    def test_another_file_takes_over_only_if_asked_to(self, cli: Callable[..., Ran], file: Any) -> None:
        assert cli("apply", "-f", file(schedules("former", "a"))).code == 0
        path = file({**schedules("former", "a"), "managedBy": "latter"})
        refused = cli("apply", "-f", path)
        assert (refused.code, "nothing was changed" in refused.err) == (1, True)
        assert cli("apply", "-f", path, "--take-over").code == 0
        assert cli("schedules", "get", "a", "-n", "former", "--json").json()["managedBy"] == "latter"

    def test_a_change_by_hand_keeps_the_name_and_is_undone(self, cli: Callable[..., Ran], file: Any) -> None:
        path = file(schedules("by-hand", "a"))
        assert cli("apply", "-f", path).code == 0
        assert cli("schedules", "create", "a", HOOK, "--every", "2h", "-n", "by-hand").code == 0
        again = cli("apply", "-f", path)
        assert '~ schedule by-hand/a\n    every: "2h" → "1h"\n' in again.out
        assert cli("schedules", "get", "a", "-n", "by-hand", "--json").json()["version"] == 3

    def test_after_a_failure_the_next_apply_makes_the_rest(self, cli: Callable[..., Ran], file: Any) -> None:
        declared = schedules("partial", "abc")
        declared["schedules"][1]["payload"] = "x" * 200_000
        failed = cli("apply", "-f", file(declared))
        assert failed.code == 1
        assert "Made 3 of 4 changes." in failed.err
        assert "schedule partial/b: PAYLOAD_TOO_LARGE" in failed.err
        declared["schedules"][1]["payload"] = "small"
        rest = cli("apply", "-f", file(declared), "--json").json()
        assert [(each["id"], each["done"]) for each in rest["changes"]] == [("b", True)]

    def test_a_refused_question_names_the_entry(self, cli: Callable[..., Ran], file: Any) -> None:
        declared = schedules("asked", "ab", maxOccurrences=3)
        assert cli("apply", "-f", file(declared)).code == 0
        # No secret is stored of `c`, and its instants may be over: so the server is asked.
        declared["schedules"].append({**declared["schedules"][0], "id": "c", "headers": {"x-key": "[redacted]"}})
        refused = cli("apply", "-f", file(declared), "--dry-run")
        assert refused.code == 1
        assert "schedules[2].headers" in refused.err
        assert "nothing was changed" in refused.err

    def test_what_is_declared_paused_begins_so(self, cli: Callable[..., Ran], file: Any) -> None:
        assert cli("apply", "-f", file(schedules("paused", "a", every="1s", paused=True))).code == 0
        shown = cli("schedules", "get", "a", "-n", "paused", "--json").json()
        # Not paused by a second change.
        assert (shown["status"], shown["version"]) == ("paused", 1)

    def test_an_unreachable_server_has_its_own_exit_code(self, cli: Callable[..., Ran], file: Any) -> None:
        assert cli("apply", "-f", file(schedules("away", "a")), "--server", "http://127.0.0.1:9").code == 3


@pytest.mark.parametrize(
    ("text", "code", "reason"),
    [
        ("schedules: [{id: a, every: 1h, callbackUrl: 'http://x/', crom: 1}]", 2, "schedules[0].crom"),
        ("schedules: [{id: a, cron: '61 * * * *', callbackUrl: 'http://x/'}]", 2, "schedules[0].cron"),
        ("flows: [{match: a}]", 2, "flows[0]: the rule limits nothing"),
        (
            "flows: [{match: a, total: {parallelism: 1}}, {match: a, total: {parallelism: 1}}]",
            2,
            "flows[1]: declares flow",
        ),
        ("namespaces: [{name: a b}]", 2, "namespaces[0].name"),
        ("managedBy: ''", 2, "managedBy"),
        ("gauges: []", 2, "gauges"),
        ("schedules: {}", 2, "schedules"),
        ("- a", 2, "must be a mapping with schedules, monitors,"),
        ("a: [", 2, "tocsin.yaml:2:1: did not find expected node content"),
        ("a: 1\na: 2", 2, "tocsin.yaml:2:1: 'a' is there twice"),
        (
            '{"managedBy": "shop", "schedules": [], "schedules": []}',
            2,
            "tocsin.yaml is no valid declaration: 'schedules' is",
        ),
        ('{"schedules": [{"id": "a", "every": "1h", "every": "2h"}]}', 2, "'every' is there twice"),
        ("x-a: !!binary aGFsbG8=\nschedules: [{id: !!binary aGFsbG8=}]", 2, "a value that JSON does not have"),
        ("schedules: [{id: a, namespace: nowhere, every: 1h, callbackUrl: 'http://x/'}]", 1, "there is no namespace"),
        ("namespaces: [{name: default, numShards: 3}]", 1, "namespaces[0].numShards: can't be changed"),
    ],
)
def test_refusals_name_the_field_and_the_remedy(cli: Any, file: Any, text: str, code: int, reason: str) -> None:
    refused = cli("apply", "-f", file(text))
    assert (refused.code, reason in refused.err) == (code, True), refused.err


def test_the_schema_accepts_what_the_command_accepts(cli: Callable[..., Ran], file: Any) -> None:
    schema = cli("apply", "--schema").json()
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    assert cli("apply", "-f", file(EVERYTHING.replace("NAME", "schema"))).code == 0
    pulled = cli("pull", "-n", "schema", "--format", "json").json()
    validator.validate({"$schema": "https://example.com", "x-any": 1, "managedBy": "schema", **pulled})
    for wrong in (
        {"schedule": []},
        {"schedules": [{"id": "a", "callbackUrl": HOOK}]},
        {"namespaces": [{"name": "a b"}]},
    ):
        assert not validator.is_valid(wrong)


def test_monitors_are_declared_changed_pulled_and_pruned(cli: Callable[..., Ran], file: Any) -> None:
    monitors = [
        {"id": "backup", "cron": "0 3 * * *", "grace": "30m", "onLate": {"url": "https://ops.example/"}},
        {"id": "beat", "every": "1h30m", "paused": True},
    ]
    declared = {
        "managedBy": "watched",
        "namespace": "watched",
        "namespaces": [{"name": "watched"}],
        "monitors": monitors,
    }
    assert cli("apply", "-f", file(declared)).code == 0
    assert cli("apply", "-f", file(declared), "--detailed-exitcode").out == "No changes; 3 checked.\n"
    pulled = json.loads(cli("pull", "-n", "watched", "--format", "json").out)
    assert pulled["monitors"] == [{"namespace": "watched", **each} for each in monitors]
    monitors[0]["grace"] = "1h"
    del monitors[1]
    applied = cli("apply", "-f", file(declared), "--prune")
    assert "Made 2 of 2 changes." in applied.err
    (left,) = cli("monitors", "list", "-n", "watched", "--json").json()["monitors"]
    assert (left["id"], left["grace"], left["managedBy"]) == ("backup", "1h", "watched")

"""`tocsin failures` against a real server, with a scripted receiver."""

from __future__ import annotations

import time

from tests.support.patience import PATIENCE_S
from tocsin.cli.receiver import ReceiverResponse


def test_failures_are_listed_by_cause_and_dismissed(cli, scripted):
    scripted.script = [ReceiverResponse(410)] * 3
    assert cli("namespaces", "create", "failing").code == 0
    for name in ("a", "b", "c"):
        assert cli("timers", "create", scripted.url, "--id", name, "--namespace", "failing", "--in", "0s").code == 0
    ends_at = time.monotonic() + PATIENCE_S
    while (groups := cli("failures", "list", "--namespace", "failing", "--json").json())["count"] < 3:
        assert time.monotonic() < ends_at
        time.sleep(0.02)
    assert [(group["count"], group["error"], group["kind"]) for group in groups["groups"]] == [(3, "HTTP 410", "timer")]
    assert "HTTP 410" in cli("failures", "list", "--namespace", "failing").out
    members = cli("failures", "members", "--namespace", "failing", "--error", "HTTP 410", "--json").json()["failures"]
    assert sorted(each["id"] for each in members) == ["a", "b", "c"]
    assert members[0]["failureId"][:20] in cli("failures", "members", "--namespace", "failing").out
    assert cli("failures", "dismiss", "--namespace", "failing").code == 2
    again = cli("timers", "replay", "c", "unknown", "--namespace", "failing", "--in", "1h")
    assert (again.code, "unknown: TIMER_NOT_FOUND" in again.err) == (1, True)
    assert cli("timers", "get", "c", "--namespace", "failing", "--json").json()["status"] == "pending"
    assert cli("failures", "list", "--namespace", "failing", "--json").json()["count"] == 2
    of_a = next(each["failureId"] for each in members if each["id"] == "a")
    one = cli("failures", "dismiss", of_a, "--namespace", "failing", "--json")
    assert one.json() == {"dismissed": 1}
    rest = cli("failures", "dismiss", "--namespace", "failing", "--error", "HTTP 410")
    assert (rest.code, "Dismissed 1 failure" in rest.err) == (0, True)
    assert cli("failures", "list", "--namespace", "failing", "--json").json()["count"] == 0


def test_failed_calls_of_a_tenant_are_listed_replayed_and_dismissed(cli, scripted):
    scripted.script = [ReceiverResponse(410)] * 3
    tenant = cli("calls", "new-tenant").out.strip()
    for _ in range(3):
        submitted = cli("calls", "submit", "charge", scripted.url, "--tenant", tenant, "--json")
        assert submitted.code == 0, submitted.err
    failed = (tenant, "--json")
    ends_at = time.monotonic() + PATIENCE_S
    while (groups := cli("failures", "list", "--tenant", *failed).json())["count"] < 3:
        assert time.monotonic() < ends_at
        time.sleep(0.02)
    assert [(group["count"], group["kind"], group["tenant"]) for group in groups["groups"]] == [(3, "call", tenant)]
    assert tenant[:8] in cli("failures", "list", "--tenant", "*").out
    members = cli("failures", "members", "--tenant", tenant, "--error", "HTTP 410", "--json").json()["failures"]
    assert len(members) == 3
    assert members[0]["failureId"][:20] in cli("failures", "members", "--tenant", tenant).out
    both = cli("failures", "list", "--tenant", tenant, "--namespace", "default")
    assert (both.code, "give one of the two" in both.err) == (2, True)
    assert cli("failures", "dismiss", members[0]["failureId"], "--tenant", *failed).json() == {"dismissed": 1}
    counted = cli("jobs", "create", "replay", "--tenant", tenant, "--all", "--dry-run", "--json").json()
    assert (counted["matched"], counted["tenant"]) == (2, tenant)
    # The server that the calls go to answers the next requests with 404.
    done = cli("jobs", "create", "replay", "--tenant", tenant, "--all", "--watch", "--yes", "--json")
    assert (done.code, done.json()["changed"]) == (0, 2), done.err
    listed = cli("jobs", "list", "--tenant", tenant)
    assert (listed.code, done.json()["id"] in listed.out, tenant[:8] in listed.out) == (0, True, True)
    while (groups := cli("failures", "list", "--tenant", *failed).json())["count"] < 2:
        assert time.monotonic() < ends_at
        time.sleep(0.02)
    assert groups["groups"][0]["error"] == "HTTP 404"
    assert "Dismissed 2 failures" in cli("failures", "dismiss", "--all", "--tenant", tenant).err

"""`tocsin jobs` against a real server."""

from __future__ import annotations

URL = "http://127.0.0.1:9/hook"


def test_a_job_is_created_watched_and_listed(cli):
    for number in range(3):
        assert cli("timers", "create", URL, "--in", "1h", "--id", f"job-{number}", "--tag", "jobs").code == 0
    before = cli("timers", "get", "job-1", "--json").json()["executeAt"]
    counted = cli("jobs", "create", "shift", "--shift-by", "-30m", "--tag", "jobs", "--dry-run", "--json")
    assert (counted.code, counted.json()["matched"], counted.json()["changed"]) == (0, 3, 0)
    done = cli("jobs", "create", "shift", "--shift-by", "-30m", "--tag", "jobs", "--watch", "--yes", "--json")
    assert done.code == 0, done.err
    assert (done.json()["state"], done.json()["changed"]) == ("completed", 3)
    assert cli("timers", "get", "job-1", "--json").json()["executeAt"] < before
    shown = cli("jobs", "get", done.json()["id"], "--watch")
    assert "completed" in shown.out
    assert "-30m" in shown.out
    listed = cli("jobs", "list", "--namespace", "default")
    assert done.json()["id"] in listed.out
    assert "completed (dry run)" in listed.out
    refused = cli("jobs", "pause", done.json()["id"])
    assert (refused.code, "JOB_ENDED" in refused.err) == (1, True)


def test_a_slow_job_is_paused_resumed_and_canceled(cli):
    for number in range(30):
        assert cli("schedules", "create", f"slow-{number}", URL, "--every", "24h").code == 0
    job = cli("jobs", "create", "pause", "--id-prefix", "slow-", "--rate", "1", "--json")
    assert (job.code, job.json()["of"]) == (0, "schedules")
    job_id = job.json()["id"]
    assert cli("jobs", "create", "delete", "--all").code == 1
    assert cli("jobs", "pause", job_id, "--json").json()["state"] == "paused"
    assert cli("jobs", "set-rate", job_id, "2", "--json").json()["ratePerSecond"] == 2
    assert cli("jobs", "resume", job_id, "--json").json()["state"] == "running"
    assert cli("jobs", "cancel", job_id, "--json").json()["state"] == "canceled"
    every = cli("jobs", "create", "delete", "--all", "--watch", "--yes", "--json").json()
    assert (every["state"], every["changed"]) == ("completed", 30)


def test_waiting_calls_of_a_tenant_are_deleted_by_a_job(cli):
    tenant = cli("calls", "new-tenant").out.strip()
    for name in ("charge one", "charge two", "mail"):
        assert cli("calls", "submit", name, "http://127.0.0.1:9/x", "--tenant", tenant, "--in", "1h").code == 0
    wanted = ("jobs", "create", "delete", "--tenant", tenant, "--name", "CHARGE", "--status", "Scheduled", "--json")
    created = ("--created-after", "2020-01-01T00:00:00Z", "--created-before", "2020-01-02T00:00:00Z")
    assert cli(*wanted, *created, "--dry-run").json()["matched"] == 0
    done = cli(*wanted, *created[:2], "--watch", "--yes").json()
    assert (done["of"], done["state"], done["changed"], done["tenant"]) == ("calls", "completed", 2, tenant)
    left = cli("calls", "list", "--tenant", tenant, "--json").json()["serviceCalls"]
    assert [each["name"] for each in left] == ["mail"]


def test_a_job_that_selects_nothing_or_does_what_is_unknown_is_refused(cli):
    unselected = cli("jobs", "create", "cancel")
    assert (unselected.code, "all: true" in unselected.err) == (1, True)
    unknown = cli("jobs", "create", "explode", "--all")
    assert (unknown.code, "cancel" in unknown.err) == (1, True)

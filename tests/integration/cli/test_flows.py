"""`tocsin flows`, the limits of `tocsin namespaces`, and `--flow-key` against a real server."""

from __future__ import annotations

URL = "http://127.0.0.1:9/hook"


def test_rules_are_put_shown_paused_and_deleted(cli):
    limits = ("--per-key-rate", "100/1m", "--per-key-burst", 10, "--per-key-parallelism", 2)
    put = cli("flows", "put", "customer:", *limits, "--total-parallelism", 8, "--close-on-retry-after", "--json")
    assert put.code == 0, put.err
    rule = put.json()
    assert rule["perKey"] == {"rate": {"count": 100, "per": "1m"}, "burst": 10, "parallelism": 2}
    assert (rule["total"], rule["closeOnRetryAfter"]) == ({"parallelism": 8}, True)
    shown = cli("flows", "get", "customer:")
    assert (shown.code, "100/1m, burst 10, parallelism 2" in shown.out) == (0, True)
    assert cli("flows", "put", "a", "--total-rate", "1/2h", "--total-burst", "3").code == 0
    listed = cli("flows", "list")
    assert ("customer:" in listed.out, "1/2h, burst 3" in listed.out) == (True, True)
    page = cli("flows", "list", "--limit", 1, "--json").json()
    assert [each["match"] for each in page["flows"]] == ["a"]
    assert cli("flows", "list", "--cursor", page["nextCursor"], "--json").json()["flows"][0]["match"] == "customer:"
    until = "2999-01-01T00:00:00Z"
    assert cli("flows", "pause", "customer:", "--until", until, "--json").json()["pausedUntil"] == until
    assert cli("flows", "resume", "customer:", "--json").json()["paused"] is False
    assert cli("flows", "delete", "customer:").code == 0
    gone = cli("flows", "get", "customer:")
    assert (gone.code, "FLOW_NOT_FOUND" in gone.err) == (1, True)
    for rate in ("100", "x/1m", "1/soon"):
        assert cli("flows", "put", "a", "--total-rate", rate).code == 2
    assert cli("flows", "put", "a").code == 1


def test_a_rule_is_ordered_in_a_namespace_with_one_shard(cli):
    assert cli("namespaces", "create", "in-order", "--shards", 1).code == 0
    put = cli("flows", "put", "order:", "--ordered", "--namespace", "in-order", "--json")
    assert (put.code, put.json()["perKey"]) == (0, {"parallelism": 1, "ordered": True})
    assert "parallelism 1, ordered" in cli("flows", "list", "--namespace", "in-order").out
    refused = cli("flows", "put", "order:", "--ordered", "--per-key-parallelism", 2, "--namespace", "in-order")
    assert (refused.code, "perKey.ordered" in refused.err) == (1, True)


def test_namespaces_have_limits(cli):
    made = cli("namespaces", "create", "limited", "--parallelism", 5, "--json")
    assert (made.code, made.json()["limits"]) == (0, {"parallelism": 5})
    changed = cli("namespaces", "update", "limited", "--rate", "7/1s", "--burst", 2, "--json")
    assert changed.json()["limits"] == {"rate": {"count": 7, "per": "1s"}, "burst": 2}
    assert "limits" not in cli("namespaces", "update", "limited", "--no-limits", "--json").json()
    assert cli("namespaces", "update", "limited", "--no-limits", "--burst", 2).code == 2


def test_timers_and_schedules_name_a_flow(cli):
    timer = ("timers", "create", URL, "--in", "1h", "--id", "flowing", "--json")
    assert cli(*timer, "--flow-key", "customer:1").json()["flowKey"] == "customer:1"
    assert "flow" in cli("timers", "list").out
    assert "flowKey" not in cli("timers", "update", "flowing", "--flow-key", "", "--json").json()
    beats = cli("schedules", "create", "beats", URL, "--every", "24h", "--flow-key", "beats", "--json")
    assert beats.json()["flowKey"] == "beats"


def test_what_is_sent_together_is_chosen_and_removed(cli):
    put = cli("flows", "put", "digest:", "--batch-max", 500, "--batch-linger", "1s", "--json")
    assert put.json()["callbackBatch"] == {"max": 500, "linger": "1s"}
    made = cli("namespaces", "create", "together", "--batch-max", 100, "--json")
    assert made.json()["callbackBatch"] == {"max": 100, "linger": "100ms"}
    assert cli("namespaces", "update", "together", "--no-batch", "--json").json().get("callbackBatch") is None
    for wrong, word in (
        (("namespaces", "update", "together", "--batch-linger", "1s"), "--batch-linger requires --batch-max"),
        (("namespaces", "update", "together", "--no-batch", "--batch-max", 2), "--no-batch conflicts"),
        (("namespaces", "update", "together", "--batch-max", 2, "--batch-linger", "soon"), "is not a duration"),
    ):
        refused = cli(*wrong)
        assert refused.code != 0
        assert word in refused.err

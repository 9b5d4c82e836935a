"""`tocsin destinations` against a real server."""

from __future__ import annotations

NAME = "http://127.0.0.1:9"


def test_destinations_are_paused_listed_probed_and_resumed(cli):
    paused = cli("destinations", "pause", f"{NAME}/hook")
    assert (paused.code, f"{NAME}: paused" in paused.out) == (0, True)
    assert cli("timers", "create", f"{NAME}/hook", "--in", "0s", "--id", "waits").code == 0
    listed = cli("destinations", "list")
    assert (listed.code, NAME in listed.out, "paused" in listed.out) == (0, True, True)
    (found,) = [each for each in cli("destinations", "list", "--json").json()["destinations"] if each["paused"]]
    assert (found["destination"], found["breaker"]) == (NAME, "closed")
    assert cli("destinations", "probe", NAME).code == 0
    resumed = cli("destinations", "resume", NAME, "--json")
    assert resumed.json()["paused"] is False
    assert cli("destinations", "pause", "shop.example").code == 1

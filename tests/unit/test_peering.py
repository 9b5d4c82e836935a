"""How a node meets others, and when it must not."""

from __future__ import annotations

import pytest

from tocsin.config import load_settings
from tocsin.model.errors import ConfigError
from tocsin.server.peers import peering_of

STORE = "postgresql://x@127.0.0.1/x"
SECRET = "sixteen letters!"


@pytest.fixture(autouse=True)
def no_settings_around(monkeypatch):
    import os

    for name in [name for name in os.environ if name.startswith("TOCSIN_")]:
        monkeypatch.delenv(name)


def peering(worker: int = 0, **flags):
    return peering_of(load_settings({"store": STORE, **flags}), shared=True, worker=worker)


def test_on_a_loopback_address_nodes_meet_without_a_secret() -> None:
    met = peering()
    assert (met.host, met.secret, met.announced(9070)) == ("127.0.0.1", "", "127.0.0.1:9070")


def test_without_a_secret_a_node_that_others_can_reach_works_alone() -> None:
    assert peering(host="10.0.0.5") is None


def test_who_announces_a_foreign_address_needs_a_secret() -> None:
    with pytest.raises(ConfigError, match=r"cluster\.secret"):
        peering(advertise="10.0.0.5")


def test_a_store_of_one_node_has_no_others() -> None:
    assert peering_of(load_settings({}), shared=False) is None


def test_what_is_announced() -> None:
    assert peering(host="10.0.0.5", cluster_secret=SECRET).announced(1) == "10.0.0.5:1"
    assert peering(host="::", advertise="[fd00::5]", cluster_secret=SECRET).announced(1) == "[fd00::5]:1"
    assert peering(host="0.0.0.0", advertise="a.internal:7", cluster_secret=SECRET).announced(1) == "a.internal:7"
    assert peering(worker=2, cluster_port=9070, cluster_secret=SECRET).port == 9072


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ({"cluster_secret": "short"}, "cluster.secret (--cluster-secret): '…' has to have at least 16 characters"),
        ({"workers": 2}, "workers: a sqlite store belongs to one process"),
        ({"workers": 2, "store": "memory://"}, "workers: a memory store is within one process"),
        ({"workers": 2, "store": STORE, "advertise": "10.0.0.5:7"}, "advertise: each worker has a port of its own"),
        ({"advertise": "http://x"}, "'http://x' is no address"),
    ],
)
def test_what_is_refused(flags, reason) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(flags)
    assert reason in str(caught.value)
    assert "short" not in str(caught.value)

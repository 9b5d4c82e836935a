"""What a node answers to requests for the service agent, by what the other nodes answer."""

from __future__ import annotations

from typing import Any

import pytest

from tocsin.cluster.limits import ClusterLimits
from tocsin.cluster.wire import RelayedResponse
from tocsin.model.errors import Unavailable
from tocsin.server.relay import AgentRelay


class Others:
    """The other nodes: what the one that runs the agent answers, and whether one may run it."""

    def __init__(self) -> None:
        self.answer: RelayedResponse | None = RelayedResponse(0, 200, [], b"")
        self.agent_possible = True

    async def ask_agent(self, *_: object) -> RelayedResponse | None:
        return self.answer


async def test_an_agent_that_no_node_is_configured_to_run_any_more_is_not_awaited() -> None:
    others: Any = Others()
    relay = AgentRelay(ClusterLimits(agent_wait_us=0), expected=False)
    relay.cluster = others
    assert await relay.ask("POST", b"/x", [], b"", "") == (200, [], b"")
    # It may be starting again.
    others.answer = None
    with pytest.raises(Unavailable, match="no node runs the service agent now"):
        await relay.ask("POST", b"/x", [], b"", "")
    others.agent_possible = False
    assert await relay.ask("POST", b"/x", [], b"", "") is None

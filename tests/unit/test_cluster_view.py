"""The cluster as a node sees it."""

from __future__ import annotations

from tests.simulation.crowd import Crowd

from tocsin.timers.cluster_view import cluster_view, report_of


def test_a_node_that_has_paused_is_shown_with_its_reason() -> None:
    crowd, seen = Crowd(), []

    async def look() -> None:
        for reason in (None, "clock_jump"):
            if reason is not None:
                crowd.supervisor.dispatcher.pause(reason)
            report = report_of(
                crowd.supervisor,
                crowd.context,
                agent=False,
                agent_configured=False,
                largest_shard_bytes=None,
                vitals=None,
            )
            (node,) = cluster_view(crowd.supervisor, report, {}).nodes
            seen.append((node.dispatching, node.paused_reason, node.paused_since_us is not None))

    crowd.run(5, look)
    assert seen == [(True, None, False), (False, "clock_jump", True)]

"""The limits of flows and namespaces on this node."""

from __future__ import annotations

from tocsin.ports.forward import FlowCounts
from tocsin.timers.engine.context import Context


class FlowControl:
    """Which timers may fire now within the limits of their flows and namespaces."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def counts(self, namespace: str) -> dict[str, FlowCounts]:
        """What this node has of the namespace's flows, by the match of their rule; without rules of which it has nothing."""
        return {}

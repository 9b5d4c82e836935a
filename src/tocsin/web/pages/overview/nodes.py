"""What all nodes report about themselves now, asked while an overview is open."""

from __future__ import annotations

from typing import NamedTuple

from tocsin.ports.forward import NodeReport
from tocsin.tasks import Refreshed
from tocsin.timers.service import TimerService

#: How often the other nodes are asked, at most, however many pages are open; without any, never.
_INTERVAL_S = 1.0


class Pause(NamedTuple):
    """A node that fires nothing, the code of the reason, and since when (microseconds)."""

    node: str
    reason: str
    since_us: int | None


class Present(NamedTuple):
    """The present state of all nodes that answer; `silent` are the names of the living others. `overdue_s`: how long the
    oldest due timer of the whole service has waited; None: not the reader's business. `started_us`: since when the one that
    runs longest runs; None if that is not known. `unowned`: shards that no living node owns."""

    nodes: int
    silent: list[str]
    overdue_s: float | None
    window_timers: int
    in_flight: int
    agent: bool
    pauses: list[Pause]
    started_us: int | None = None
    unowned: int = 0


class Nodes(Refreshed):
    """Asks the other nodes. If they can't be asked, they are silent."""

    def __init__(self, service: TimerService) -> None:
        super().__init__(_INTERVAL_S)
        self._service = service
        self._reports: dict[bytes, NodeReport] = {}

    async def _read(self) -> None:
        self._reports = dict(await self._service.reports())

    def present(self) -> Present:
        """The state of the nodes as of the last `refresh`, and of this one as of now."""
        service, others, owners = self._service, self._service.other_nodes(), self._service.owners()
        known = [(name, self._reports.get(incarnation)) for incarnation, name in others.items()]
        answered = [(service.node, service.report()), *((name, each) for name, each in known if each is not None)]
        shards = [shard for _, report in answered for shard in report.shards]
        uptimes_s = [report.vitals.uptime_s for _, report in answered if report.vitals is not None]
        return Present(
            nodes=1 + len(others),
            silent=sorted(name for name, report in known if report is None),
            overdue_s=max((shard.lag_us for shard in shards), default=0) / 1e6,
            window_timers=sum(shard.window_timers for shard in shards),
            in_flight=sum(shard.in_flight for shard in shards),
            agent=any(report.agent for _, report in answered),
            pauses=[
                Pause(name, report.dispatch_paused_reason, report.paused_since_us)
                for name, report in answered
                if report.dispatch_paused_reason is not None
            ],
            started_us=(service.now_us() - max(uptimes_s) * 1_000_000 if len(uptimes_s) == 1 + len(others) else None),
            unowned=sum(each is None or not owners.nodes[each].alive for each in owners.owners),
        )

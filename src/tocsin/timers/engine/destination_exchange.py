"""What this node reports about its destinations, and what it learns of them from other nodes."""

from __future__ import annotations

from tocsin.ports.destinations import REPORTED_MAX, DestinationPeers, DestinationQuestion, DestinationReport
from tocsin.timers.engine.admission import Admission
from tocsin.timers.engine.breaker import BreakerState
from tocsin.timers.engine.context import Context
from tocsin.timers.engine.destination import Destination

#: How often other nodes are asked about the destinations whose breakers are not closed here.
ASK_INTERVAL_US = 5_000_000


class DestinationExchange:
    """Answers questions about this node's destinations, and closes breakers here where another node has had a success."""

    def __init__(self, context: Context, admission: Admission) -> None:
        self._context = context
        self._admission = admission
        #: The other nodes, once they can be reached.
        self.peers: DestinationPeers | None = None

    def answer(self, question: DestinationQuestion) -> list[DestinationReport]:
        """What this node knows of the destinations, without those that it does not know."""
        known, most = self._admission.destinations, min(question.most, REPORTED_MAX)
        if question.names:
            names = question.names[:REPORTED_MAX]
            if question.probe:
                for name in names:
                    self._admission.probe(name)
            found = [known[name] for name in names if name in known]
        else:
            found = [each for each in known.values() if each.caller is self._context.caller]
        boot_us = self._context.clock.boottime_us()
        reports = [_report(each, boot_us) for each in found]
        return sorted(reports, key=by_attention)[:most]

    async def check(self) -> None:
        """Call it every `ASK_INTERVAL_US`."""
        names = [each.name for each in self._admission.open_breakers()][:REPORTED_MAX]
        if not names or self.peers is None:
            return
        asked_at = self._context.clock.boottime_us()
        for reports in (await self.peers.destinations(DestinationQuestion(names))).values():
            for report in reports:
                self._learn(report, asked_at)

    def _learn(self, report: DestinationReport, asked_at: int) -> None:
        """Closes the breaker if the other node's success was certainly later than the last failure here: it was not before
        `asked_at - succeeded_us_ago`. No clocks are compared."""
        known = self._admission.destinations.get(report.name)
        ago_us = report.succeeded_us_ago
        if known is not None and ago_us is not None and asked_at - ago_us > known.failed_at:
            self._admission.close_breaker(report.name, "node")


def by_attention(report: DestinationReport) -> tuple[object, ...]:
    """The order in which destinations need attention: those with open breakers, then those that keep most timers waiting."""
    closed = report.breaker == BreakerState.CLOSED
    return (closed, -report.waiting, -report.failures, -report.in_flight, report.name)


def _report(destination: Destination, boot_us: int) -> DestinationReport:
    breaker = destination.breaker
    breaker.forget_old(boot_us)
    wait_us = max(breaker.until_us - boot_us, 0) if breaker.state is BreakerState.OPEN else 0
    return DestinationReport(
        destination.name,
        destination.in_flight,
        destination.limit,
        destination.waiting,
        breaker.attempts,
        breaker.failures,
        breaker.state.value,
        wait_us,
        destination.last_error,
        destination.last_error_at,
        boot_us - destination.answered_at if destination.answered_at else None,
    )

"""The HTTP requests and responses about destinations: their structs, their conversion, and what they do, with their entries
in the audit trail."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from tocsin.model.audit import AuditAction, Detail
from tocsin.model.instants import format_instant
from tocsin.model.validation import InputRules
from tocsin.ports.audit import Actor, AuditLog
from tocsin.ports.destinations import REPORTED_MAX, DestinationReport
from tocsin.timers.destinations import Destinations, DestinationView
from tocsin.timers.engine.breaker import BreakerState
from tocsin.web.http import constraints as limits
from tocsin.web.http.constraints import refuse_bad_fields
from tocsin.web.http.optional import or_default
from tocsin.web.http.wire import Instant, RequestStruct, ResponseStruct, about

#: Destinations in an answer, for a request without a limit.
_ROWS_DEFAULT = 100
_COUNT = Meta(ge=0)
InFlight = Annotated[int, about("Attempts that are in flight.", 3), _COUNT]
Limit = Annotated[
    int,
    about("How many attempts may be in flight at once; it shrinks while the destination does not answer.", 256),
    _COUNT,
]
Waiting = Annotated[int, about("Due timers that wait in memory; further ones may wait in the store.", 120), _COUNT]
Attempts = Annotated[int, about("Attempts that have ended within the last 30 seconds.", 40), _COUNT]
Failures = Annotated[int, about("Those of them without a response, or with a status of 500 and above.", 39), _COUNT]
NextProbe = Annotated[Instant, about("When the next probe begins; absent unless the breaker is open.")]


class DestinationName(RequestStruct):
    """Names a destination."""

    destination: Annotated[
        str,
        about("An http or https URL, of which scheme, host and port count.", "https://shop.example"),
        limits.CALLBACK_URL,
    ]


class ListDestinations(RequestStruct):
    """How many destinations are wanted."""

    limit: Annotated[
        int | UnsetType, about("Maximum number of destinations. Default 100."), limits.between(1, REPORTED_MAX)
    ] = UNSET


class DestinationOnNode(ResponseStruct, kw_only=True):
    """A destination as one node knows it."""

    node: Annotated[str, about("The node's name.", "n1")]
    in_flight: InFlight
    limit: Limit
    waiting: Waiting
    attempts: Attempts
    failures: Failures
    breaker: BreakerState
    next_probe_at: NextProbe | UnsetType = UNSET


class Destination(ResponseStruct, kw_only=True):
    """A scheme, host and port to which timers are sent; the numbers are those of all nodes together."""

    destination: Annotated[str, about("Scheme, host and port.", "https://shop.example:443")]
    paused: Annotated[bool, about("Whether no attempt begins until it is resumed.")]
    paused_at: Annotated[Instant, about("Since when it is paused.")] | UnsetType = UNSET
    in_flight: InFlight
    limit: Limit
    waiting: Waiting
    attempts: Attempts
    failures: Failures
    breaker: Annotated[
        BreakerState,
        about(
            "`open`: nearly all attempts failed, and none begins before the next probe; `half_open`: probes begin, one at a "
            "time; `closed`: attempts begin as usual. That of the node where it is the worst."
        ),
    ]
    next_probe_at: NextProbe | UnsetType = UNSET
    last_error: Annotated[str | UnsetType, about("The last failure; absent if there was none lately.", "HTTP 503")] = (
        UNSET
    )
    last_error_at: Annotated[Instant, about("When that was.")] | UnsetType = UNSET
    last_success_at: (
        Annotated[Instant, about("When an attempt last succeeded; absent if none did lately.")] | UnsetType
    ) = UNSET
    nodes: Annotated[list[DestinationOnNode], about("What each node knows of it, without those that know nothing.")]
    complete: Annotated[
        bool, about("Whether all nodes have answered; otherwise more may be in flight and wait than is shown.")
    ]


class DestinationList(ResponseStruct):
    """Destinations, those that need attention first."""

    destinations: list[Destination]
    further: Annotated[int, about("How many more there are, at least; raise limit.", 0), _COUNT]


def destination_answer(view: DestinationView, now_us: int, *, complete: bool) -> Destination:
    """A destination as clients see it."""
    total = view.total
    return Destination(
        destination=total.name,
        paused=view.paused_at is not None,
        paused_at=UNSET if not view.paused_at else format_instant(view.paused_at),
        in_flight=total.in_flight,
        limit=total.limit,
        waiting=total.waiting,
        attempts=total.attempts,
        failures=total.failures,
        breaker=_state(total),
        next_probe_at=_next_probe(total, now_us),
        last_error=total.last_error or UNSET,
        last_error_at=format_instant(total.last_error_at) if total.last_error_at else UNSET,
        last_success_at=(
            UNSET if total.succeeded_us_ago is None else format_instant(max(now_us - total.succeeded_us_ago, 0))
        ),
        nodes=[
            DestinationOnNode(
                node=node,
                in_flight=each.in_flight,
                limit=each.limit,
                waiting=each.waiting,
                attempts=each.attempts,
                failures=each.failures,
                breaker=_state(each),
                next_probe_at=_next_probe(each, now_us),
            )
            for node, each in view.nodes
        ],
        complete=complete,
    )


def _state(report: DestinationReport) -> BreakerState:
    """A node of a newer release may know further states."""
    try:
        return BreakerState(report.breaker)
    except ValueError:
        return BreakerState.OPEN


def _next_probe(report: DestinationReport, now_us: int) -> str | UnsetType:
    return format_instant(now_us + report.wait_us) if report.breaker == BreakerState.OPEN else UNSET


class DestinationRequests:
    """Every method raises InvalidInput with all bad fields of the request, and Unavailable."""

    def __init__(self, destinations: Destinations, rules: InputRules, audit: AuditLog) -> None:
        self._destinations, self._rules, self._audit = destinations, rules, audit

    async def pause(self, sent: DestinationName, actor: Actor, now_us: int) -> Destination:
        """Lets no attempt of the destination begin."""
        name = self._name(sent)
        await self._destinations.pause(name)
        await self._record(actor, name, {"paused": True})
        return await self._answer(name, now_us)

    async def resume(self, sent: DestinationName, actor: Actor, now_us: int) -> Destination:
        """Ends a pause."""
        name = self._name(sent)
        await self._destinations.resume(name)
        await self._record(actor, name, {"paused": False})
        return await self._answer(name, now_us)

    async def probe(self, sent: DestinationName, actor: Actor, now_us: int) -> Destination:
        """Has nodes whose breaker is not closed try the destination at once."""
        name = self._name(sent)
        answer = await self._answer(name, now_us, probe=True)
        await self._record(actor, name, {"probed": True})
        return answer

    async def _answer(self, name: str, now_us: int, *, probe: bool = False) -> Destination:
        view, complete = await self._destinations.get(name, probe=probe)
        return destination_answer(view, now_us, complete=complete)

    def _name(self, sent: DestinationName) -> str:
        refuse_bad_fields(sent, self._rules)
        return self._destinations.name_of(sent.destination)

    async def _record(self, actor: Actor, name: str, details: dict[str, Detail]) -> None:
        await self._audit.write(AuditAction.DESTINATION_CHANGED, actor, name, details)

    # Last in the class, because it hides the built-in name in what follows.
    async def list(self, sent: ListDestinations, now_us: int) -> DestinationList:
        """The destinations that need attention first."""
        refuse_bad_fields(sent, self._rules)
        limit = or_default(sent.limit, _ROWS_DEFAULT)
        views, further, complete = await self._destinations.list(limit)
        return DestinationList([destination_answer(each, now_us, complete=complete) for each in views], further)

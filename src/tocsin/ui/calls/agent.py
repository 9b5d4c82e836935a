"""The agent as the pages reach it: there, or away for a reason that is said plainly."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from starlette.responses import Response

from tocsin.agent.api.service_calls import ServiceCalls
from tocsin.model.errors import Unavailable
from tocsin.ui.pages import Pages
from tocsin.ui.visit import Handler, Relayed, Visit


@dataclass(frozen=True, slots=True)
class Away:
    """Why there are no service calls on this node: for a page's title and text, with the page's HTTP status."""

    title: str
    text: str
    status: int


OFF = Away(
    "Service calls are switched off here",
    "This server only keeps timers. Whoever runs it switches the service agent on with the setting agent.enabled, "
    "or by starting it without --no-agent; with a MySQL store, by naming a database for it (agent.database).",
    404,
)
STANDBY = Away(
    "Service calls are served by another node",
    "The service agent does not run on this node at the moment: it stands by. Its calls are with the node that has the "
    "agent's database; this page comes to life when that is this one.",
    503,
)


def standby(node: str) -> Away:
    """The same, with the name of that node where it is known."""
    return replace(STANDBY, text=f"The service agent runs on node {node} now. {STANDBY.text}") if node else STANDBY


#: Asked anew for each page: a node may come to have the agent, or lose it.
AgentSource = Callable[[], ServiceCalls | Away]
CallsHandler = Callable[[Visit, ServiceCalls], Awaitable[Response]]


Headers = list[tuple[bytes, bytes]]
#: Brings a request (method, target as sent, headers, body, client's address) to the node that has the agent; None when
#: none has. Raises Unavailable.
Relay = Callable[[str, bytes, Headers, bytes, str], Awaitable[tuple[int, Headers, bytes] | None]]


class Gate:
    """Gives handlers the agent, or answers for it. `relay` asks the node that has it, where there are several."""

    def __init__(self, source: AgentSource, pages: Pages, relay: Relay | None = None) -> None:
        self._source = source
        self._pages = pages
        self._relay = relay

    def __call__(self, handler: CallsHandler, *, elsewhere: Handler | None = None) -> Handler:
        """The handler for a route. `elsewhere` answers, instead of the node that has the agent, what no other can."""

        async def answer(visit: Visit) -> Response:
            calls = self._source()
            if not isinstance(calls, Away):
                return await handler(visit, calls)
            if self._relay is not None:
                if elsewhere is not None:
                    return await elsewhere(visit)
                scope = visit.request.scope
                query = scope["query_string"]
                target = scope["raw_path"] + (b"?" + query if query else b"")
                try:
                    headers = list(scope["headers"])
                    answered = await self._relay(scope["method"], target, headers, visit.body, visit.address)
                except Unavailable as error:
                    if visit.fragment:
                        raise
                    reason = str(error)
                    calls = Away("Service calls can’t be reached now", f"{reason[:1].upper()}{reason[1:]}.", 503)
                else:
                    if answered is not None:
                        return Relayed(*answered)
            return self._pages.page("calls/away.html", visit, calls.status, title="Calls", away=calls)

        return answer

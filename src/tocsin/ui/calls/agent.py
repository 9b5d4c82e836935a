"""The agent as the pages reach it: there, or away for a reason that is said plainly."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from starlette.responses import Response

from tocsin.agent.api.service_calls import ServiceCalls
from tocsin.ui.pages import Pages
from tocsin.ui.visit import Handler, Visit


@dataclass(frozen=True, slots=True)
class Away:
    """Why there are no service calls on this node: for a page's title and text, with the page's HTTP status."""

    title: str
    text: str
    status: int


OFF = Away(
    "Service calls are switched off here",
    "This server only keeps timers. Whoever runs it switches the service agent on with the setting agent.enabled, "
    "or by starting it without --no-agent.",
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


class Gate:
    """Gives handlers the agent, or answers for it."""

    def __init__(self, source: AgentSource, pages: Pages) -> None:
        self._source = source
        self._pages = pages

    def __call__(self, handler: CallsHandler) -> Handler:
        """The handler for a route."""

        async def answer(visit: Visit) -> Response:
            calls = self._source()
            if isinstance(calls, Away):
                return self._pages.page("calls/away.html", visit, calls.status, title="Calls", away=calls)
            return await handler(visit, calls)

        return answer

"""What every page has: the menu of scopes in the rail."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.responses import Response

from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.pages import SCOPED_PATHS
from tocsin.web.pages.site import Part, route

#: Namespaces that the menu lists; the page of all namespaces has the others.
_SCOPES_MAX = 100


class Shell(Part):
    """The parts of every page that are fetched when they are opened."""

    @route("GET", "/ui/scopes")
    async def scopes(self, context: RequestContext) -> Response:
        """The menu of scopes: links to the page on which it was opened, or to the timers if that has no scope."""
        path, query = _opened_on(context)
        names = [each.name for each in await self.visible_namespaces(context)]
        kept = [(name, value) for name, value in query if name not in ("namespace", "cursor")]
        links = {name: f"{path}?{urlencode([*kept, ('namespace', name)])}" for name in names[:_SCOPES_MAX]}
        return self._pages.page(
            "scopes.html",
            context,
            here=dict(query).get("namespace", ""),
            everything=f"{path}?{urlencode(kept)}" if kept else path,
            links=links,
            more=len(names) - len(links),
        )


def _opened_on(context: RequestContext) -> tuple[str, list[tuple[str, str]]]:
    """The path and the query of the page that asks; those of the list of timers for a page without a scope."""
    sent = urlsplit(context.request.headers.get("hx-current-url", ""))
    if sent.path not in SCOPED_PATHS:
        return "/timers", [("namespace", context.scope)] if context.scope else []
    return sent.path, parse_qsl(sent.query)

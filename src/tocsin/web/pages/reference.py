"""`/docs`: the API reference, which a script makes of the OpenAPI document."""

from __future__ import annotations

from starlette.responses import Response

from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.site import Part, route


class Reference(Part):
    """The page, which needs no sign-in."""

    @route("GET", "/docs")
    async def show(self, context: RequestContext) -> Response:
        """The frame; the script fetches the document."""
        return self._pages.page("reference.html", context, title="API reference")

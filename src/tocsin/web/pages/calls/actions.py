"""Actions on existing service calls: star, tag, untag, delete."""

from __future__ import annotations

from starlette.responses import HTMLResponse, RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import InvalidInput, ServiceCallNotScheduled
from tocsin.web.http.errors import problem_kind
from tocsin.web.pages.calls.detail import CallDetail
from tocsin.web.pages.calls.presentation import STAR, list_path, path
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.pages import toast
from tocsin.web.pages.presentation import sentence
from tocsin.web.pages.site import CallPart, Site, route


class CallActions(CallPart):
    """Each action redirects to a page that confirms it, or responds with the call's page and the reason of the refusal."""

    def __init__(self, site: Site, detail: CallDetail) -> None:
        super().__init__(site)
        self._detail = detail

    @route("POST", "/calls/star")
    async def star(self, context: RequestContext) -> Response:
        """Adds the star to the call that the field `star` names, or removes it from the one that `unstar` names. One form
        serves a whole list."""
        tenant, starred = context.form.get("tenant").lower(), "star" in context.form
        service_call_id = context.form.get("star" if starred else "unstar").lower()
        context.permit_tenant(Role.WRITE, tenant)
        back = context.form.exact("back")
        back = back if back.startswith("/calls") else list_path(tenant)
        try:
            change = context.calls.tag if starred else context.calls.untag
            await change(tenant, service_call_id, STAR, context.correlation_id)
        except InvalidInput as error:
            if context.fragment:
                return HTMLResponse("", problem_kind(error).status, headers=toast(sentence(error), "failed"))
            return await self._refused(context, service_call_id, error)
        return HTMLResponse("") if context.fragment else RedirectResponse(back, 303)

    @route("POST", "/calls/tag")
    async def tag(self, context: RequestContext) -> Response:
        """Adds a tag."""
        tenant, service_call_id = self._writable(context)
        try:
            await context.calls.tag(tenant, service_call_id, context.form.get("tag"), context.correlation_id)
        except InvalidInput as error:
            return await self._refused(context, service_call_id, error)
        return _to(tenant, service_call_id, "tagged")

    @route("POST", "/calls/untag")
    async def untag(self, context: RequestContext) -> Response:
        """Removes a tag."""
        tenant, service_call_id = self._writable(context)
        await context.calls.untag(tenant, service_call_id, context.form.exact("tag"), context.correlation_id)
        return _to(tenant, service_call_id, "untagged")

    @route("POST", "/calls/delete")
    async def delete(self, context: RequestContext) -> Response:
        """Deletes a call that has not started."""
        tenant, service_call_id = self._writable(context)
        try:
            await context.calls.delete(tenant, service_call_id, context.correlation_id)
        except ServiceCallNotScheduled as error:
            return await self._refused(context, service_call_id, error)
        return RedirectResponse(list_path(tenant, notice="deleted"), 303)

    async def _refused(
        self,
        context: RequestContext,
        service_call_id: str,
        error: InvalidInput | ServiceCallNotScheduled,
    ) -> Response:
        return await self._detail.of(
            context,
            context.form.get("tenant"),
            service_call_id,
            status=problem_kind(error).status,
            problem=sentence(error),
            tag=context.form.get("tag"),
        )

    def _writable(self, context: RequestContext) -> tuple[str, str]:
        tenant, service_call_id = context.form.get("tenant").lower(), context.form.get("id").lower()
        context.permit_tenant(Role.WRITE, tenant)
        return tenant, service_call_id


def _to(tenant: str, service_call_id: str, notice: str) -> Response:
    return RedirectResponse(f"{path(tenant, service_call_id)}?notice={notice}", 303)

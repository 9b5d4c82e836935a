"""What people do to service calls that exist: star, tag, untag, delete."""

from __future__ import annotations

from starlette.responses import HTMLResponse, RedirectResponse, Response

from tocsin.agent.api.service_calls import ServiceCalls
from tocsin.http.errors import problem_kind
from tocsin.model.access import Role
from tocsin.model.errors import InvalidInput, ServiceCallNotScheduled
from tocsin.ui.calls.agent import Gate
from tocsin.ui.calls.detail import CallDetailHandlers
from tocsin.ui.calls.show import STAR, list_path, path
from tocsin.ui.pages import toast
from tocsin.ui.visit import Handler, Visit


class CallActionHandlers:
    """Every change is answered by a redirect to a page that says it, or by the page with the reason of the refusal."""

    def __init__(self, gate: Gate, detail: CallDetailHandlers) -> None:
        self._gate = gate
        self._detail = detail

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths, handlers."""
        return [
            ("POST", "/calls/star", self._gate(self.star)),
            ("POST", "/calls/tag", self._gate(self.tag)),
            ("POST", "/calls/untag", self._gate(self.untag)),
            ("POST", "/calls/delete", self._gate(self.delete)),
        ]

    async def star(self, visit: Visit, calls: ServiceCalls) -> Response:
        """Makes a call a favourite (`star` names it) or takes that away (`unstar` does). One form serves a whole list."""
        tenant, starred = visit.form.get("tenant").lower(), "star" in visit.form
        service_call_id = visit.form.get("star" if starred else "unstar").lower()
        visit.permit_tenant(Role.WRITE, tenant)
        back = visit.form.exact("back")
        back = back if back.startswith("/calls") else list_path(tenant)
        try:
            change = calls.tag if starred else calls.untag
            await change(tenant, service_call_id, STAR, visit.correlation_id)
        except InvalidInput as error:
            if visit.fragment:
                return HTMLResponse("", problem_kind(error).status, headers=toast(_sentence(error), "failed"))
            return await self._refused(visit, calls, service_call_id, error)
        return HTMLResponse("") if visit.fragment else RedirectResponse(back, 303)

    async def tag(self, visit: Visit, calls: ServiceCalls) -> Response:
        """Adds a tag."""
        tenant, service_call_id = self._writable(visit)
        try:
            await calls.tag(tenant, service_call_id, visit.form.get("tag"), visit.correlation_id)
        except InvalidInput as error:
            return await self._refused(visit, calls, service_call_id, error)
        return _to(tenant, service_call_id, "tagged")

    async def untag(self, visit: Visit, calls: ServiceCalls) -> Response:
        """Removes a tag."""
        tenant, service_call_id = self._writable(visit)
        await calls.untag(tenant, service_call_id, visit.form.exact("tag"), visit.correlation_id)
        return _to(tenant, service_call_id, "untagged")

    async def delete(self, visit: Visit, calls: ServiceCalls) -> Response:
        """Forgets a call that has not begun."""
        tenant, service_call_id = self._writable(visit)
        try:
            await calls.delete(tenant, service_call_id, visit.correlation_id)
        except ServiceCallNotScheduled as error:
            return await self._refused(visit, calls, service_call_id, error)
        return RedirectResponse(list_path(tenant, did="deleted"), 303)

    async def _refused(
        self, visit: Visit, calls: ServiceCalls, service_call_id: str, error: InvalidInput | ServiceCallNotScheduled
    ) -> Response:
        return await self._detail.of(
            visit,
            calls,
            visit.form.get("tenant"),
            service_call_id,
            status=problem_kind(error).status,
            problem=_sentence(error),
            tag=visit.form.get("tag"),
        )

    def _writable(self, visit: Visit) -> tuple[str, str]:
        tenant, service_call_id = visit.form.get("tenant").lower(), visit.form.get("id").lower()
        visit.permit_tenant(Role.WRITE, tenant)
        return tenant, service_call_id


def _to(tenant: str, service_call_id: str, did: str) -> Response:
    return RedirectResponse(f"{path(tenant, service_call_id)}?did={did}", 303)


def _sentence(error: Exception) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."

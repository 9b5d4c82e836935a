"""`/calls/new`: the form that explains itself, and shows the equal command while one types."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tocsin.agent.api.service_calls import ServiceCalls
from tocsin.agent.api.validation import Submission
from tocsin.http import agent_wire as wire
from tocsin.http.access import Keyring
from tocsin.http.agent_convert import submission
from tocsin.http.errors import problem_kind
from tocsin.http.reading import JsonReader
from tocsin.model.access import Role
from tocsin.model.errors import FieldError, IdempotencyConflict, InvalidInput, TocsinError, Unavailable
from tocsin.ui.calls.agent import Gate
from tocsin.ui.calls.forms import METHODS, CallForm, command
from tocsin.ui.calls.show import path
from tocsin.ui.calls.tenants import Tenants
from tocsin.ui.editing import DELAYS
from tocsin.ui.forms import curl
from tocsin.ui.pages import Pages
from tocsin.ui.visit import Handler, Visit

_CONFLICT = (
    "This form was sent before, with something else in it, and that call exists. What you see would be another one: send "
    "it again if you mean that."
)
_UNSURE = "Send it again: it will not be made twice."
_NOTHING: dict[str, Any] = {"curl": "", "command": "", "unchanged": False}


class CallFormHandlers:
    """Submitting. `keys`: whether the equal commands bring one."""

    def __init__(self, gate: Gate, pages: Pages, tenants: Tenants, *, keys: Keyring) -> None:
        self._gate = gate
        self._pages = pages
        self._tenants = tenants
        self._keys = keys
        self._reader = JsonReader(wire.SubmitServiceCall)

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths, handlers."""
        return [
            ("GET", "/calls/new", self._gate(self.new)),
            ("POST", "/calls/new", self._gate(self.submit)),
            ("POST", "/ui/calls/equal", self._gate(self.equal)),
        ]

    async def new(self, visit: Visit, calls: ServiceCalls) -> Response:
        """An empty form, or with `like` the copy of a call. Without a tenant it is the last one's, or a new one's."""
        tenant = visit.query.get("tenant").lower() or next(iter(self._tenants.known(visit)), "") or calls.new_id()
        visit.permit_tenant(Role.WRITE, tenant)
        if "like" in visit.query:
            form = CallForm.like((await calls.get(tenant, visit.query.get("like"))).call, calls.new_id())
        else:
            form = CallForm(tenant=tenant, id=calls.new_id(), url=visit.query.get("url"))
        return self._form(visit, calls, form)

    async def submit(self, visit: Visit, calls: ServiceCalls) -> Response:
        """Submits it, or shows the form again with what is wrong."""
        form = CallForm.read(visit.form)
        visit.permit_tenant(Role.WRITE, form.tenant)
        try:
            sent = self._sent(form, visit.now_us)._replace(service_call_id=form.id or calls.new_id())
            submitted = await calls.submit(form.tenant, sent, visit.correlation_id)
        except InvalidInput as error:
            return self._form(visit, calls, form, problem=error)
        except IdempotencyConflict as error:
            before, form.id = form.id, calls.new_id()
            return self._form(visit, calls, form, problem=error, words=_CONFLICT, before=path(form.tenant, before))
        except Unavailable as error:
            return self._form(visit, calls, form, problem=error, words=f"{error}. {_UNSURE}")
        response = RedirectResponse(f"{path(form.tenant, submitted.service_call_id)}?did=submitted", 303)
        self._tenants.remember(visit, form.tenant, response)
        return response

    async def equal(self, visit: Visit, calls: ServiceCalls) -> Response:
        """The commands that would do the same, and what is still wrong, while somebody types."""
        form = CallForm.read(visit.form)
        visit.permit_tenant(Role.READ, form.tenant)
        return HTMLResponse(self._pages.text("timers/equal.html", visit, self._equal(visit, calls, form)))

    def _sent(self, form: CallForm, now_us: int) -> Submission:
        return submission(self._reader.read(msgspec.json.encode(form.request(now_us))))

    def _equal(self, visit: Visit, calls: ServiceCalls, form: CallForm) -> dict[str, Any]:
        try:
            request = form.request(visit.now_us)
        except InvalidInput as error:
            return {"errors": _readable(error), **_NOTHING}
        errors: list[FieldError] = []
        try:
            calls.check(form.tenant, self._sent(form, visit.now_us))
        except InvalidInput as error:
            errors = _readable(error)
        server = str(visit.request.base_url).rstrip("/")
        url = f"{server}/api/tenants/{form.tenant}/service-calls"
        return {
            "errors": errors,
            "curl": curl(url, request, key=self._keys.required),
            "command": command(server, form.tenant, request, form),
            "unchanged": False,
        }

    def _form(
        self,
        visit: Visit,
        calls: ServiceCalls,
        form: CallForm,
        *,
        problem: TocsinError | None = None,
        words: str = "",
        before: str = "",
    ) -> Response:
        errors: dict[str, str] = {}
        if isinstance(problem, InvalidInput):
            for bad in problem.errors:
                errors.setdefault(_field(bad.path), bad.reason)
        known = self._tenants.known(visit)
        return self._pages.page(
            "calls/form.html",
            visit,
            200 if problem is None else problem_kind(problem).status,
            title="New call",
            form=form,
            errors=errors,
            problem=words,
            before=before,
            methods=METHODS,
            delays=DELAYS,
            tenants=known if form.tenant in known else [form.tenant, *known],
            made=form.tenant not in known,
            may_make=not visit.visitor.names_tenants,
            equal=self._equal(visit, calls, form),
        )


def _field(api_path: str) -> str:
    """The part of the form that a path of the API belongs to."""
    path = api_path.removeprefix("requestSpec.")
    if path.startswith("retryPolicy."):
        return path.removeprefix("retryPolicy.")
    return path.split(".", 1)[0].split("[", 1)[0] or "form"


def _readable(error: InvalidInput) -> list[FieldError]:
    """The errors under the names that the form has."""
    return [FieldError(bad.path.removeprefix("requestSpec."), bad.reason) for bad in error.errors]

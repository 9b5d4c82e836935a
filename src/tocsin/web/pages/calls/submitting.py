"""`/calls/new`: the form of a service call, with the equivalent commands beside it."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import FieldError, IdempotencyConflict, InvalidInput, TocsinError, Unavailable
from tocsin.service_calls.api.service_calls import ServiceCalls
from tocsin.service_calls.api.validation import Submission
from tocsin.web.http import agent_wire as wire
from tocsin.web.http.access import Keyring
from tocsin.web.http.errors import problem_kind
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.calls.agent import Gate
from tocsin.web.pages.calls.forms import METHODS, CallForm, command
from tocsin.web.pages.calls.presentation import path
from tocsin.web.pages.calls.tenants import Tenants
from tocsin.web.pages.context import Handler, RequestContext
from tocsin.web.pages.pages import Pages
from tocsin.web.pages.timers.editing import DELAYS
from tocsin.web.pages.timers.forms import curl

_CONFLICT = (
    "This form was already submitted with other values, and that call exists. To submit another call with the values below, "
    "submit the form again."
)
_OUTCOME_UNKNOWN = "Submit the form again; the call is not sent twice."
_NO_COMMANDS: dict[str, Any] = {"curl": "", "command": "", "unchanged": False}


class CallFormHandlers:
    """Submitting calls. `keys` indicates whether the equivalent commands need an API key."""

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
            ("POST", "/ui/calls/equivalent", self._gate(self.equivalent)),
        ]

    async def new(self, context: RequestContext, calls: ServiceCalls) -> Response:
        """An empty form, or with `like` a copy of a call. Without a tenant it uses the most recent one, or a new one."""
        tenant = context.query.get("tenant").lower() or next(iter(self._tenants.known(context)), "") or calls.new_id()
        context.permit_tenant(Role.WRITE, tenant)
        if "like" in context.query:
            form = CallForm.like((await calls.get(tenant, context.query.get("like"))).call, calls.new_id())
        else:
            form = CallForm(tenant=tenant, id=calls.new_id(), url=context.query.get("url"))
        return self._form(context, calls, form)

    async def submit(self, context: RequestContext, calls: ServiceCalls) -> Response:
        """Submits the call, or shows the form again with its errors."""
        form = CallForm.read(context.form)
        context.permit_tenant(Role.WRITE, form.tenant)
        try:
            sent = self._sent(form, context.now_us)._replace(service_call_id=form.id or calls.new_id())
            submitted = await calls.submit(form.tenant, sent, context.correlation_id)
        except InvalidInput as error:
            return self._form(context, calls, form, problem=error)
        except IdempotencyConflict as error:
            before, form.id = form.id, calls.new_id()
            return self._form(context, calls, form, problem=error, words=_CONFLICT, before=path(form.tenant, before))
        except Unavailable as error:
            return self._form(context, calls, form, problem=error, words=f"{error}. {_OUTCOME_UNKNOWN}")
        response = RedirectResponse(f"{path(form.tenant, submitted.service_call_id)}?notice=submitted", 303)
        self._tenants.remember(context, form.tenant, response)
        return response

    async def equivalent(self, context: RequestContext, calls: ServiceCalls) -> Response:
        """The equivalent commands, and the form's errors, for the script that requests them on input."""
        form = CallForm.read(context.form)
        context.permit_tenant(Role.READ, form.tenant)
        return HTMLResponse(self._pages.text("timers/equivalent.html", context, self._equivalent(context, calls, form)))

    def _sent(self, form: CallForm, now_us: int) -> Submission:
        return self._reader.read(msgspec.json.encode(form.request(now_us))).submission

    def _equivalent(self, context: RequestContext, calls: ServiceCalls, form: CallForm) -> dict[str, Any]:
        try:
            request = form.request(context.now_us)
        except InvalidInput as error:
            return {"errors": _readable(error), **_NO_COMMANDS}
        errors: list[FieldError] = []
        try:
            calls.check(form.tenant, self._sent(form, context.now_us))
        except InvalidInput as error:
            errors = _readable(error)
        server = str(context.request.base_url).rstrip("/")
        url = f"{server}/api/tenants/{form.tenant}/service-calls"
        return {
            "errors": errors,
            "curl": curl(url, request, key=self._keys.required),
            "command": command(server, form.tenant, request, form),
            "unchanged": False,
        }

    def _form(
        self,
        context: RequestContext,
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
        known = self._tenants.known(context)
        return self._pages.page(
            "calls/form.html",
            context,
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
            may_make=not context.principal.is_limited,
            equivalent=self._equivalent(context, calls, form),
        )


def _field(api_path: str) -> str:
    """The form field of an API field's path."""
    path = api_path.removeprefix("requestSpec.")
    if path.startswith("retryPolicy."):
        return path.removeprefix("retryPolicy.")
    return path.split(".", 1)[0].split("[", 1)[0] or "form"


def _readable(error: InvalidInput) -> list[FieldError]:
    """The errors with the names of the form's fields."""
    return [FieldError(bad.path.removeprefix("requestSpec."), bad.reason) for bad in error.errors]

"""`/calls/new`: the form of a service call, with the equivalent commands."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import FieldError, IdempotencyConflict, InvalidInput, TocsinError, Unavailable
from tocsin.service_calls.api.validation import Submission
from tocsin.web.http import agent_wire as wire
from tocsin.web.http.errors import problem_kind
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.calls.forms import METHODS, SPEC, CallForm, command
from tocsin.web.pages.calls.presentation import path
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.forms import DELAYS, RETRY_LABELS, by_field, curl
from tocsin.web.pages.site import CallPart, route

_CONFLICT = (
    "This form was already submitted with other values, and that call exists. To submit another call with the values below, "
    "submit the form again."
)
_OUTCOME_UNKNOWN = "Submit the form again; the call is not sent twice."
_NO_COMMANDS: dict[str, Any] = {"curl": "", "command": "", "unchanged": False}


_reader = JsonReader(wire.SubmitServiceCall)


class CallSubmission(CallPart):
    """Submitting calls."""

    @route("GET", "/calls/new")
    async def new(self, context: RequestContext) -> Response:
        """An empty form, or with `like` a copy of a call. Without a tenant it uses the most recent one, or a new one."""
        tenant = (
            context.query.get("tenant").lower()
            or next(iter(self._site.tenants.known(context)), "")
            or context.calls.new_id()
        )
        context.permit_tenant(Role.WRITE, tenant)
        if "like" in context.query:
            form = CallForm.like(
                (await context.calls.get(tenant, context.query.get("like"))).call, context.calls.new_id()
            )
        else:
            form = CallForm(tenant=tenant, id=context.calls.new_id(), url=context.query.get("url"))
        return self._form(context, form)

    @route("POST", "/calls/new")
    async def submit(self, context: RequestContext) -> Response:
        """Submits the call, or shows the form again with its errors."""
        form = CallForm.read(context.form)
        context.permit_tenant(Role.WRITE, form.tenant)
        try:
            sent = self._sent(form, context.now_us)._replace(service_call_id=form.id or context.calls.new_id())
            submitted = await context.calls.submit(form.tenant, sent, context.correlation_id)
        except InvalidInput as error:
            return self._form(context, form, problem=error)
        except IdempotencyConflict as error:
            before, form.id = form.id, context.calls.new_id()
            return self._form(context, form, problem=error, words=_CONFLICT, before=path(form.tenant, before))
        except Unavailable as error:
            return self._form(context, form, problem=error, words=f"{error}. {_OUTCOME_UNKNOWN}")
        response = RedirectResponse(f"{path(form.tenant, submitted.service_call_id)}?notice=submitted", 303)
        self._site.tenants.remember(context, form.tenant, response)
        return response

    @route("POST", "/ui/calls/equivalent")
    async def equivalent(self, context: RequestContext) -> Response:
        """The equivalent commands, and the form's errors, for the script that requests them on input."""
        form = CallForm.read(context.form)
        context.permit_tenant(Role.READ, form.tenant)
        return HTMLResponse(self._pages.text("timers/equivalent.html", context, self._equivalent(context, form)))

    def _sent(self, form: CallForm, now_us: int) -> Submission:
        return _reader.read(msgspec.json.encode(form.request(now_us))).submission

    def _equivalent(self, context: RequestContext, form: CallForm) -> dict[str, Any]:
        try:
            request = form.request(context.now_us)
        except InvalidInput as error:
            return {"errors": _readable(error), **_NO_COMMANDS}
        errors: list[FieldError] = []
        try:
            context.calls.check(form.tenant, self._sent(form, context.now_us))
        except InvalidInput as error:
            errors = _readable(error)
        server = str(context.request.base_url).rstrip("/")
        url = f"{server}/api/v1/tenants/{form.tenant}/service-calls"
        return {
            "errors": errors,
            "curl": curl(url, request, key=self._site.keys.required),
            "command": command(server, form.tenant, request, form),
            "unchanged": False,
        }

    def _form(
        self,
        context: RequestContext,
        form: CallForm,
        *,
        problem: TocsinError | None = None,
        words: str = "",
        before: str = "",
    ) -> Response:
        errors = by_field(problem, SPEC)
        known = self._site.tenants.known(context)
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
            retry_labels=RETRY_LABELS,
            first_invalid="",
            tenants=known if form.tenant in known else [form.tenant, *known],
            made=form.tenant not in known,
            may_make=not context.principal.is_limited,
            equivalent=self._equivalent(context, form),
        )


def _readable(error: InvalidInput) -> list[FieldError]:
    """The errors with the names of the form's fields."""
    return [FieldError(bad.path.removeprefix(SPEC), bad.reason) for bad in error.errors]

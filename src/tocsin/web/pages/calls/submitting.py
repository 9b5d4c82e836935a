"""`/calls/new`: the form of a service call, with the equivalent commands."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import IdempotencyConflict, InvalidInput, Unavailable
from tocsin.service_calls.api.validation import Submission
from tocsin.web.http import agent_wire as wire
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.calls.forms import METHODS, SPEC, CallForm, command
from tocsin.web.pages.calls.presentation import path
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.editing import Editing, Outcome
from tocsin.web.pages.forms import DELAYS, RETRY_LABELS, Body, by_field
from tocsin.web.pages.site import CallPart

_CONFLICT = (
    "This form was already submitted with other values, and that call exists. To submit another call with the values below, "
    "submit the form again."
)
_OUTCOME_UNKNOWN = "Submit the form again; the call is not sent twice."
_reader = JsonReader(wire.SubmitServiceCall)


#: The labels of the fields by their names in the API, in their order on the page.
_LABELS = {
    "url": "URL", "method": "Method", "delay": "In", "dueAt": "At", "body": "Payload", "headers": "Headers", **RETRY_LABELS,
    "name": "Name", "tags": "Tags", "flowKey": "Flow", "credential": "Credential", "tenantId": "Tenant",
}  # fmt: skip


class CallSubmission(CallPart, Editing[CallForm]):
    """Submitting calls."""

    kind = "call"
    labels = _LABELS
    prefix = SPEC
    methods = METHODS
    form_type = CallForm

    def permit(self, context: RequestContext, role: Role, form: CallForm) -> None:
        context.permit_tenant(role, form.tenant)
        if form.credential:
            context.permit(role, context.calls.credentials_namespace)

    async def new(self, context: RequestContext) -> Response:
        """Without a tenant it uses the most recent one, or a new one."""
        calls = context.calls
        tenant = context.query.get("tenant").lower() or next(iter(self._site.tenants.known(context)), "")
        form = CallForm(tenant=tenant or calls.new_id(), id=calls.new_id(), url=context.query.get("url"))
        self.permit(context, Role.WRITE, form)
        if "like" in context.query:
            form = CallForm.like((await calls.get(form.tenant, context.query.get("like"))).call, form.id)
        return await self.form(context, form)

    async def create(self, context: RequestContext) -> Response:
        form = CallForm.read(context.form)
        self.permit(context, Role.WRITE, form)
        if self.only_checked(context):
            return await self.form(context, form)
        try:
            sent = self._sent(form, context.now_us)._replace(service_call_id=form.id or context.calls.new_id())
            submitted = await context.calls.submit(form.tenant, sent, context.correlation_id)
        except InvalidInput as error:
            found = by_field(error, SPEC)
            return await self.form(context, form, problem=error, words=found.get("form") or found.get("serviceCallId"))
        except IdempotencyConflict as error:
            before, form.id = form.id, context.calls.new_id()
            return await self.form(context, form, problem=error, words=_CONFLICT, before=path(form.tenant, before))
        except Unavailable as error:
            return await self.form(context, form, problem=error, words=f"{error}. {_OUTCOME_UNKNOWN}")
        if submitted.created:
            context.changed("calls/submit", form.tenant, submitted.service_call_id)
        response = RedirectResponse(f"{path(form.tenant, submitted.service_call_id)}?notice=submitted", 303)
        self._site.tenants.remember(context, form.tenant, response)
        return response

    def _sent(self, form: CallForm, now_us: int) -> Submission:
        return _reader.read(msgspec.json.encode(form.request(now_us))).submission

    async def outcome(self, context: RequestContext, form: CallForm, view: None) -> Outcome:
        found = Outcome(when=form.due_words())
        try:
            found.body = form.request(context.now_us)
            context.calls.check(form.tenant, self._sent(form, context.now_us))
        except InvalidInput as error:
            found.errors = error.errors
        return found

    def commands(self, context: RequestContext, form: CallForm, body: Body, *, new: bool) -> tuple[str, str]:
        return f"tenants/{form.tenant}/service-calls", command(context.server, form.tenant, body, form)

    async def values(self, context: RequestContext, form: CallForm, existing: None) -> dict[str, Any]:
        known = self._site.tenants.known(context)
        return {
            "before": "",
            "delays": DELAYS,
            "tenants": known if form.tenant in known else [form.tenant, *known],
            "made": form.tenant not in known,
            "may_make": not context.principal.is_limited,
            "new_tenant": context.calls.new_id(),
            "flow_namespace": context.calls.limits.flow_namespace,
            "credentials_namespace": context.calls.credentials_namespace,
        }

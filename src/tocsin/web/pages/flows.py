"""`/flows`: the rules of flows, and what is in flight and waits of each; and the form that creates and changes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import InvalidInput, NotFound, TooManyFlows
from tocsin.model.flow import FLOWS_MAX, PAUSED_FOR_GOOD, Flow
from tocsin.web.http.flows import DeleteFlow, FlowName, FlowRequests, PauseFlow, PutFlow
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.forms import Body
from tocsin.web.pages.limit_fields import (
    BATCH_LABELS,
    batch_body,
    batch_in_words,
    batch_texts,
    limit_body,
    limit_labels,
    limit_texts,
    limits_in_words,
)
from tocsin.web.pages.presentation import State
from tocsin.web.pages.put_forms import PutForm
from tocsin.web.pages.site import Site, route

_PAUSED, _WAITING, _FREE = (
    State("paused", "suspended"),
    State("at its limit", "waiting"),
    State("below its limit", "done"),
)
#: The limits of the form: their names in the API, and in words.
_LIMITS = {"perKey": "Each key", "total": "All keys together"}
#: The fields of the form by their names in the API, in their order on the page.
_LABELS = {
    "namespace": "Namespace",
    "match": "Flow",
    **limit_labels("perKey", _LIMITS["perKey"]),
    "perKey.ordered": "Each key: in order",
    **limit_labels("total", _LIMITS["total"]),
    "closeOnRetryAfter": "Retry-After",
    **BATCH_LABELS,
}
_reader = JsonReader(PutFlow)


class FlowsPage(PutForm):
    """The table, the form, and what changes a rule."""

    kind, labels, name_field = "flow", _LABELS, "match"
    role = Role.ADMIN
    taken, too_many = "has a rule already: edit that one", (TooManyFlows,)

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._flows = site.service.flow_rules
        self._requests = FlowRequests(self._flows, site.rules, site.audit)

    @route("GET", "/flows")
    async def table(self, context: RequestContext) -> Response:
        """The rules of the scope; a script reloads the live part."""
        if context.scope:
            context.permit(Role.READ, context.scope)
            views, more = await self._flows.list(context.scope, "", FLOWS_MAX)
        else:
            views, more = await self._flows.of_all(lambda name: context.principal.may(Role.READ, name), FLOWS_MAX)
        rows = []
        for view in views:
            until_us = view.flow.closed_until(context.now_us)
            state = _PAUSED if until_us is not None else _WAITING if view.counts.waiting else _FREE
            ends_us = None if until_us == PAUSED_FOR_GOOD else until_us
            rows.append((view, state, limits_in_words(view.flow.per_key), limits_in_words(view.flow.total), ends_us))
        return self._pages.page(
            "flows/live.html" if context.fragment else "flows/list.html",
            context,
            title="Flows",
            polled=True,
            rows=rows,
            paused=_PAUSED,
            batch_in_words=batch_in_words,
            more=more,
            complete=all(view.complete for view in views),
            may_change=context.principal.may(Role.ADMIN),
        )

    @route("GET", "/flows/new")
    async def new(self, context: RequestContext) -> Response:
        """The form for a new rule."""
        context.permit(Role.ADMIN)
        return await self.form(context, _fields_of(None) | {"namespace": context.scope}, edited=False)

    @route("POST", "/flows/{change:str}")
    async def change(self, context: RequestContext) -> Response:
        """Pauses, resumes or deletes a rule."""
        context.permit(Role.ADMIN)
        namespace, match = context.form.exact("namespace"), context.form.exact("match")
        change = context.request.path_params["change"]
        if change == "pause":
            await self._requests.pause(PauseFlow(namespace, match), context.actor, context.now_us)
        elif change == "resume":
            await self._requests.resume(FlowName(namespace, match), context.actor)
        elif change == "delete":
            await self._requests.delete(DeleteFlow(namespace, match), context.actor)
        else:
            raise NotFound("there is no such page")
        scope = context.form.exact("scope")
        return self.listed(scope) if scope else RedirectResponse("/flows", 303)

    def permit_change(self, context: RequestContext, namespace: str) -> None:
        context.permit(Role.ADMIN)

    async def stored(self, namespace: str, name: str) -> dict[str, str]:
        return _fields_of((await self._requests.get(FlowName(namespace, name))).flow)

    async def put(self, context: RequestContext, fields: dict[str, str], expected: Body) -> None:
        sent = _reader.read(msgspec.json.encode(self._body(fields) | expected))
        await self._requests.put(sent, context.actor)

    def _body(self, fields: dict[str, str]) -> Body:
        body: Body = {"namespace": fields["namespace"], "match": fields["match"]}
        for path in _LIMITS:
            limits = limit_body(path, fields)
            if fields.get(f"{path}.ordered") == "yes":
                limits["ordered"] = True
            if limits:
                body[path] = limits
        if fields["closeOnRetryAfter"] == "yes":
            body["closeOnRetryAfter"] = True
        if (batch := batch_body(fields)) is not None:
            body["callbackBatch"] = batch
        return body

    def errors(self, error: InvalidInput) -> dict[str, str]:
        errors = super().errors(error)
        if "" in errors:
            del errors[""]
            errors["perKey.rate.count"] = "nothing is limited: give a rate, a number in flight, Retry-After, or a batch"
        return errors

    def values(self, fields: Mapping[str, str]) -> dict[str, Any]:
        return {"limits": _LIMITS}


def _fields_of(flow: Flow | None) -> dict[str, str]:
    """The fields of the form, as stored; those of a new rule for None."""
    fields = dict.fromkeys(_LABELS, "")
    if flow is None:
        return fields | limit_texts("perKey", None) | limit_texts("total", None)
    fields |= limit_texts("perKey", flow.per_key) | limit_texts("total", flow.total)
    fields |= {"namespace": flow.namespace, "match": flow.match, "version": str(flow.version)} | batch_texts(
        flow.callback_batch
    )
    fields["closeOnRetryAfter"] = "yes" if flow.close_on_retry_after else ""
    if flow.per_key is not None and flow.per_key.ordered:
        fields["perKey.ordered"] = "yes"
    return fields

"""`/namespaces`: the namespaces as a table, and a page with the settings of each."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import (
    FieldError,
    InvalidInput,
    JobRunning,
    NamespaceExists,
    NamespaceNotEmpty,
    RotationPending,
    VersionConflict,
)
from tocsin.model.hooks import NO_HOOKS, Event, field_of, redacted
from tocsin.model.instants import format_duration
from tocsin.model.namespace import (
    DEFAULT_NAMESPACE,
    RESERVED_PREFIX,
    RETENTION_DEFAULT_US,
    Answers,
    HistoryMode,
    Namespace,
    policy_in_force,
)
from tocsin.model.quota import NO_QUOTAS, Quota
from tocsin.model.retry import DEFAULT_POLICY
from tocsin.timers.listing import IdListRequest
from tocsin.web.http import administration as wire
from tocsin.web.http.namespace_deletion import DeleteNamespace, DeletionRequests
from tocsin.web.http.namespaces import NamespaceRequests
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.admin.numbers import COUNTED_MAX, NumberSource
from tocsin.web.pages.admin.tables import table_part
from tocsin.web.pages.callback_forms import HOOK_LABELS
from tocsin.web.pages.context import Fields, RequestContext, whole_number
from tocsin.web.pages.forms import RETRY_LABELS, RequestForm, by_field, outdated_words
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
from tocsin.web.pages.presentation import with_query
from tocsin.web.pages.site import Part, Site, route

_NOTICES = {
    "created": "Namespace created.",
    "updated": "Namespace updated.",
    "paused": "Namespace paused. Its timers fire when it is resumed.",
    "resumed": "Namespace resumed. Timers that came due during the pause fire now.",
}
_HISTORY_WORDS = {
    HistoryMode.ALL: "All finished timers",
    HistoryMode.FAILURES: "Failed timers only",
    HistoryMode.NONE: "None",
}
_ANSWERS_WORDS = {
    Answers.STANDARD: "Any 2xx, unless the JSON has ok: false (standard)",
    Answers.STRICT: "2xx with an empty body or ok: true (strict)",
}
_QUOTA_LABELS = {
    f"quotas.{Quota.PENDING}": "Pending timers",
    f"quotas.{Quota.CREATES_PER_SECOND}": "Creates per second",
    f"quotas.{Quota.PAYLOAD_BYTES}": "Bytes of a payload",
}
_LIMIT_LABELS = limit_labels("limits", "All attempts together")
#: The fields of a form by their names in the API, in their order on the page.
_LABELS = {
    "name": "Name",
    "numShards": "Shards",
    "history": "History",
    "retention": "Retention",
    "answers": "Success",
    "secret": "Signing secret",
    **RETRY_LABELS,
    **HOOK_LABELS,
    **_QUOTA_LABELS,
    **_LIMIT_LABELS,
    **BATCH_LABELS,
    "eventSink": "Events",
    "grace": "Grace period",
    "force": "Rotate although the previous secret is still valid",
    "cancelPending": "Pending timers and schedules",
    "typed": "Confirmation",
}
#: Names that are no segment of a path, or that of another page.
_UNNAMED = frozenset({".", "..", "new"})

_create_reader = JsonReader(wire.CreateNamespace)
_update_reader = JsonReader(wire.UpdateNamespace)
_rotate_reader = JsonReader(wire.RotateSecret)


def settings_path(name: str) -> str:
    """The path of the page with the settings of a namespace."""
    quoted = quote(name, safe="")
    return f"/namespaces/?name={quoted}" if name in _UNNAMED else f"/namespaces/{quoted}"


class Namespaces(Part):
    """The table of namespaces, their settings, and the form for a new one."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._numbers = NumberSource(site.service)
        self._requests = NamespaceRequests(site.service, site.parser, site.audit)
        self._deletions = DeletionRequests(site.service, site.jobs, site.rules, site.audit)

    @route("GET", "/namespaces")
    async def table(self, context: RequestContext) -> Response:
        """The namespaces that the principal may read."""
        part = table_part(context, await self.visible_namespaces(context), _name, _name)
        sound = [each.name for each in part.rows if not each.damaged]
        numbers = await self._numbers.of(sound, context.now_us)
        return self._pages.page(
            "admin/namespaces.html",
            context,
            title="Namespaces",
            part=part,
            numbers=numbers,
            incomplete=len(numbers) < len(sound),
            may_admin=context.principal.may(Role.ADMIN),
            settings_path=settings_path,
            policy_in_force=policy_in_force,
        )

    @route("GET", "/namespaces/new")
    async def new(self, context: RequestContext) -> Response:
        """The form for a new namespace."""
        context.permit(Role.ADMIN)
        retention = format_duration(RETENTION_DEFAULT_US)
        form = {"name": "", "numShards": "", "history": "all", "retention": retention, "answers": "standard"}
        return await self._new(context, form)

    async def _new(self, context: RequestContext, form: dict[str, str], problem: Exception | None = None) -> Response:
        cluster = await self._service.cluster()
        taken = {"name": str(problem)} if isinstance(problem, NamespaceExists) else {}
        return self._pages.page(
            "admin/namespace_new.html",
            context,
            _status(problem),
            title="New namespace",
            total_shards=cluster.total_shards,
            form=form,
            **_words(by_field(problem) | taken),
        )

    @route("POST", "/namespaces/new")
    async def create(self, context: RequestContext) -> Response:
        """Creates a namespace."""
        context.permit(Role.ADMIN)
        form = {name: context.form.get(name) for name in ("name", "numShards", "history", "retention", "answers")}
        body: dict[str, Any] = {"name": form["name"], "history": form["history"]}
        body |= {name: form[name] for name in ("retention", "answers") if form[name]}
        if form["numShards"]:
            body["numShards"] = whole_number(form["numShards"]) if form["numShards"].isdecimal() else form["numShards"]
        if context.form.get("secret"):
            body["secret"] = context.form.get("secret")
        try:
            await self._requests.create(_create_reader.read(msgspec.json.encode(body)), context.actor)
        except (InvalidInput, NamespaceExists) as error:
            return await self._new(context, form, error)
        return RedirectResponse(with_query(settings_path(form["name"]), {"notice": "created"}), 303)

    @route("POST", "/namespaces/change")
    async def change(self, context: RequestContext) -> Response:
        """Updates the settings of a namespace, or pauses or resumes it. The form with all settings has the version that it
        was filled from, and so undoes nothing that others have changed since."""
        context.permit(Role.ADMIN)
        form = context.form
        name = form.exact("name")
        body: dict[str, Any] = {"name": name}
        notice = "updated"
        if "version" in form:
            body["expectedVersion"] = whole_number(form.get("version"))
        if "paused" in form:
            body["paused"] = form.get("paused") == "yes"
            notice = "paused" if body["paused"] else "resumed"
        body |= {each: form.get(each) for each in ("history", "retention", "secret", "answers") if form.get(each)}
        if form.get("unsign") == "yes":
            body["secret"] = None
        before = await self.namespace(name)
        body |= _changed_hooks(before, form) | _changed_quotas(before, form) | _changed_limits(before, form)
        body |= _changed_batch(before, form)
        if "eventSink" in form and (sink := form.get("eventSink")) != (before.event_sink or ""):
            body["eventSink"] = sink or None
        errors: list[FieldError] = []
        if "retry" in form:
            sent = RequestForm.read(form)
            body["retryPolicy"] = sent.policy("retryPolicy", errors) if form.get("retry") == "custom" else None
        try:
            if errors:
                raise InvalidInput(*errors)
            await self._requests.update(_update_reader.read(msgspec.json.encode(body)), context.actor)
        except (InvalidInput, VersionConflict) as error:
            return await self._settings(context, name, problem=error)
        return RedirectResponse(with_query(settings_path(name), {"notice": notice}), 303)

    @route("POST", "/namespaces/rotate")
    async def rotate(self, context: RequestContext) -> Response:
        """Replaces the signing secret. Only this response shows the new secret."""
        context.permit(Role.ADMIN)
        body: dict[str, Any] = {"name": context.form.exact("name"), "force": context.form.get("force") == "yes"}
        body |= {"grace": context.form.get("grace")} if context.form.get("grace") else {}
        try:
            sent = _rotate_reader.read(msgspec.json.encode(body))
            _, rotation = await self._requests.rotate(sent, context.actor)
        except (InvalidInput, RotationPending) as error:
            return await self._settings(context, body["name"], problem=error)
        return await self._settings(context, sent.name, rotated=rotation.secret)

    @route("POST", "/namespaces/delete")
    async def delete(self, context: RequestContext) -> Response:
        """Begins the job that deletes a namespace whose name was entered to confirm it, and leads to the job's page."""
        context.permit(Role.ADMIN)
        name, pending = context.form.exact("name"), context.form.get("pending") == "yes"
        try:
            if context.form.exact("typed") != name:
                raise InvalidInput(FieldError("typed", f"is not {name}; enter the namespace’s name, or leave it"))
            sent = DeleteNamespace(name=name, cancel_pending=pending)
            job = await self._deletions.delete(sent, context.actor, context.now_us)
        except (InvalidInput, NamespaceNotEmpty, JobRunning) as error:
            return await self._settings(context, name, problem=error)
        return RedirectResponse(f"/jobs/{job.id}", 303)

    @route("GET", "/namespaces/")
    async def unnamed(self, context: RequestContext) -> Response:
        """The settings of a namespace whose name is no segment of a path."""
        return await self._settings(context, context.query.exact("name"))

    @route("GET", "/namespaces/{name}")
    async def settings(self, context: RequestContext) -> Response:
        """The settings of a namespace, which admins change here."""
        return await self._settings(context, context.request.path_params["name"])

    async def _settings(
        self, context: RequestContext, name: str, *, problem: Exception | None = None, rotated: str = ""
    ) -> Response:
        context.permit(Role.READ, name)
        namespace = await self.namespace(name)
        errors = by_field(problem, nested=_LABELS)
        notice, may_admin = context.query.get("notice"), context.principal.may(Role.ADMIN)
        undone = may_admin and notice == ("paused" if namespace.paused else "resumed")
        if isinstance(problem, RotationPending):
            errors = {"force": str(problem)}
        elif isinstance(problem, NamespaceNotEmpty | JobRunning):
            errors = {"cancelPending": str(problem)}
        may_admin = may_admin and namespace.deleting is None
        return self._pages.page(
            "admin/namespace.html",
            context,
            _status(problem),
            title=name,
            namespace=namespace,
            outdated=outdated_words("namespace") if isinstance(problem, VersionConflict) else "",
            settings_path=settings_path(name),
            form=_form_of(namespace) | (_sent(context) if problem is not None else {}),
            may_admin=may_admin,
            total_shards=(await self._service.cluster()).total_shards,
            policy=policy_in_force(None, namespace),
            rotated=rotated,
            quota_labels=_QUOTA_LABELS,
            limits_in_words=limits_in_words(namespace.limits),
            batch_in_words=batch_in_words(namespace.callback_batch),
            quota_use=await self._service.quota_use(name),
            **await self._deletion(context, namespace, may_admin),
            notice_text=_NOTICES.get(notice, ""),
            undo=("/namespaces/change", {"name": name, "paused": "no" if namespace.paused else "yes"})
            if undone
            else None,
            **_words(errors),
        )

    async def _deletion(self, context: RequestContext, namespace: Namespace, may_admin: bool) -> dict[str, Any]:
        """What the form that deletes the namespace shows: pending timers and live schedules, as far as they are counted."""
        name = namespace.name
        fixed = name == DEFAULT_NAMESPACE or name.startswith(RESERVED_PREFIX)
        if fixed or not may_admin or namespace.damaged:
            return {"deletable": False}
        request = IdListRequest(limit=COUNTED_MAX, reads_max=1)
        schedules, more = await self._service.list_schedules(name, request, lambda view: view)
        return {
            "deletable": True,
            "numbers": await self._numbers.of_one(name, context.now_us),
            "schedules_known": f"{len(schedules)}{'+' if more else ''}" if schedules else "",
        }


def _name(namespace: Namespace) -> str:
    return namespace.name


def _status(problem: Exception | None) -> int:
    return 200 if problem is None else 400 if isinstance(problem, InvalidInput) else 409


def _words(errors: dict[str, str]) -> dict[str, Any]:
    """What both forms show besides their fields."""
    return {
        "errors": errors,
        "labels": _LABELS,
        "hook_labels": HOOK_LABELS,
        "first_invalid": next((each for each in _LABELS if each in errors), ""),
        "history_words": _HISTORY_WORDS,
        "answers_words": _ANSWERS_WORDS,
    }


def _form_of(namespace: Namespace) -> dict[str, str]:
    """The fields of the form, as stored."""
    return {
        "history": namespace.history.value,
        "retention": format_duration(namespace.retention_us),
        "answers": namespace.answers.value,
        "retry": "default" if namespace.retry is None else "custom",
        "grace": "24h",
        "version": str(namespace.version),
        "pending": "",
        **_hooks_of(namespace),
        **_quotas_of(namespace),
        **limit_texts("limits", namespace.limits),
        **batch_texts(namespace.callback_batch),
        "eventSink": namespace.event_sink or "",
        **RequestForm.policy_texts(namespace.retry or DEFAULT_POLICY),
    }


def _hooks_of(namespace: Namespace) -> dict[str, str]:
    """The URLs of its hooks, without their secrets, by their names in the API."""
    hooks = {field_of(event): getattr(namespace.hooks or NO_HOOKS, event) for event in Event}
    return {name: "" if hook is None else redacted(hook).url for name, hook in hooks.items()}


def _changed_hooks(namespace: Namespace, form: Fields) -> dict[str, Any]:
    """The hooks whose URLs the form changes."""
    before = _hooks_of(namespace)
    return {
        name: {"url": form.get(name)} if form.get(name) else None
        for name in before
        if name in form and form.get(name) != before[name]
    }


def _quotas_of(namespace: Namespace) -> dict[str, str]:
    """Its quotas, by the fields of the form; empty where there is none."""
    quotas = namespace.quotas or NO_QUOTAS
    values = (quotas.pending, quotas.creates_per_second, quotas.payload_bytes)
    return {name: "" if value is None else str(value) for name, value in zip(_QUOTA_LABELS, values, strict=True)}


def _changed_quotas(namespace: Namespace, form: Fields) -> dict[str, Any]:
    """The quotas that the form changes; an empty one is removed."""
    changed = {
        field.partition(".")[2]: whole_number(text) if text.isdecimal() else text or None
        for field, before in _quotas_of(namespace).items()
        if field in form and (text := form.get(field)) != before
    }
    return {"quotas": changed} if changed else {}


def _changed_limits(namespace: Namespace, form: Fields) -> dict[str, Any]:
    """The limits if the form changes them, None if it removes them."""
    before = limit_body("limits", limit_texts("limits", namespace.limits))
    sent = {name: form.get(name) for name in _LIMIT_LABELS}
    if any(name not in form for name in _LIMIT_LABELS) or (limits := limit_body("limits", sent)) == before:
        return {}
    return {"limits": limits or None}


def _sent(context: RequestContext) -> dict[str, str]:
    """The fields of the form, as sent."""
    texts = RequestForm.texts(context.form)
    policy = {name: texts[name] for name in RequestForm.policy_texts(DEFAULT_POLICY)} if "retry" in context.form else {}
    names = (
        "history",
        "retention",
        "answers",
        "retry",
        "grace",
        "version",
        "pending",
        *HOOK_LABELS,
        *_QUOTA_LABELS,
        *_LIMIT_LABELS,
        *BATCH_LABELS,
        "eventSink",
    )
    return {name: context.form.get(name) for name in names if name in context.form} | policy


def _changed_batch(namespace: Namespace, form: Fields) -> dict[str, Any]:
    """How callbacks are sent together if the form changes that, None if it ends it."""
    if any(name not in form for name in BATCH_LABELS):
        return {}
    batch = batch_body({name: form.get(name) for name in BATCH_LABELS})
    return {} if batch == batch_body(batch_texts(namespace.callback_batch)) else {"callbackBatch": batch}

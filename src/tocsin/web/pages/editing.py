"""The flow of the forms that create and edit timers and schedules and submit calls. While a form is filled in, one request
checks it, settles what belongs together, and returns all that the page shows of it."""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from starlette.responses import HTMLResponse, RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import FieldError, InvalidInput, ScheduleEnded, TimerNotPending, TocsinError, VersionConflict
from tocsin.model.schedule_words import joined
from tocsin.model.validation import METHODS
from tocsin.timers.schedules import ScheduleView
from tocsin.timers.service import TimerView
from tocsin.web.http.errors import problem_kind
from tocsin.web.pages.callback_forms import CallbackForm, Plan
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.forms import Body, RequestForm, by_field, curl, fresh_id, outdated_words
from tocsin.web.pages.presentation import with_query
from tocsin.web.pages.site import Part, RouteEntry, preferred

R = TypeVar("R", bound=RequestForm)
F = TypeVar("F", bound=CallbackForm)
V = TypeVar("V", TimerView, ScheduleView)

#: Buttons that change or check the form instead of sending it; their names.
_KEEPING = ("preview", "preset", "add_jitter", "new_tenant")
#: Fields that the server may fill in when another one is changed.
_SETTLED = ("sentence", "cron", "zone", "jitter", "tenant")
#: The fields that name what a form creates.
_NAMES = ("id", "namespace")


@dataclass(slots=True)
class Outcome:
    """What a form would do: why it can't yet, the equivalent request, the attempts, and when it is sent, in words. A schedule
    also has its `first` instant in words and its `preview`."""

    errors: Sequence[FieldError] = ()
    body: Body | None = None
    plan: Plan | None = None
    when: str = ""
    first: str = ""
    preview: Any = None
    more: dict[str, Any] = field(default_factory=dict)


class Editing(Part, Generic[R]):
    """A form: an empty one, one that is sent, and what the page shows of it meanwhile."""

    #: What is edited: `timer`, `schedule` or `call`.
    kind: ClassVar[str]
    #: The labels of the fields by their names in the API, in their order on the page; what those names begin with.
    labels: ClassVar[Mapping[str, str]]
    prefix: ClassVar[str] = ""
    methods: ClassVar[Sequence[str]] = METHODS
    form_type: type[R]

    def routes(self) -> Sequence[RouteEntry]:
        path = f"/{self.kind}s"
        entries: list[RouteEntry] = [
            ("GET", f"{path}/new", self.new),
            ("POST", f"{path}/new", self.create),
            ("POST", f"/ui{path}/equivalent", self.equivalent),
        ]
        return [(method, where, self._handler(handler)) for method, where, handler in entries]

    @abstractmethod
    def permit(self, context: RequestContext, role: Role, form: R) -> None:
        """Raises Forbidden unless the principal has the role where the form belongs."""

    @abstractmethod
    async def new(self, context: RequestContext) -> Response:
        """An empty form, or with `like` a copy under a new id."""

    @abstractmethod
    async def create(self, context: RequestContext) -> Response:
        """Stores what the form describes, or shows the form again with its errors or with a question. The form keeps all
        input."""

    @abstractmethod
    async def outcome(self, context: RequestContext, form: R, view: Any) -> Outcome:
        """What the form would do, to what is stored if there is a view."""

    @abstractmethod
    def commands(self, context: RequestContext, form: R, body: Body, *, new: bool) -> tuple[str, str]:
        """The path of the API operation that takes a request, and the equivalent `tocsin` command."""

    async def stored(self, context: RequestContext, form: R) -> Any:
        """What a form changes; None for a new one."""
        return None

    def outdated(self, form: R, view: Any) -> bool:
        """Whether what is stored has been changed since the form was filled from it."""
        return False

    async def values(self, context: RequestContext, form: R, existing: Any) -> dict[str, Any]:
        """Further values for the form's template."""
        return {}

    def only_checked(self, context: RequestContext) -> bool:
        """Whether a button was used that doesn't send the form."""
        return any(name in context.form for name in _KEEPING)

    async def equivalent(self, context: RequestContext) -> Response:
        """All that changes on the page of a form, for the script that requests it on input."""
        form = self.form_type.read(context.form)
        self.permit(context, Role.READ, form)
        existing = await self.stored(context, form)
        values = await self._shown(context, form, existing)
        # The form of what is stored has no fields for its name.
        fixed = _NAMES if existing is not None else ()
        values["shown"]["lines"] = {name: line for name, line in values["shown"]["lines"].items() if name not in fixed}
        settled = {name for name in _SETTLED if context.form.get(name) != getattr(form, name, "")}
        values |= {"form": form, "kind": self.kind, "settled": settled}
        values["labels"] = [name for name in self.labels if name not in fixed]
        values |= {"errors": values["shown"]["errors"], "first_invalid": ""}
        return HTMLResponse(self._pages.text("form_update.html", context, values))

    async def _shown(self, context: RequestContext, form: R, view: Any) -> dict[str, Any]:
        found = await self.outcome(context, form, view)
        errors = by_field(InvalidInput(*found.errors), self.prefix)
        if not form.url:
            # A form that is not filled in yet is no error.
            errors = {name: reason for name, reason in errors.items() if self.labels.get(name) != "URL"}
        shown: dict[str, Any] = {
            "errors": errors,
            "plan": found.plan,
            "lines": form.lines(found.plan.words if found.plan else ""),
            "curl": "",
            "command": "",
            "preview": found.preview,
            "when": found.when,
            "first": found.first,
            "note": "",
        }
        unchanged = view is not None and found.body is not None and len(found.body) <= 2
        if view is not None and self.outdated(form, view):
            # The commands would undo what others have changed.
            shown["note"] = f"The {self.kind} was changed since this form was opened."
            return {"shown": shown, **found.more}
        if errors:
            shown["note"] = f"Correct {joined([self.labels.get(name, name) for name in errors])} first."
        elif unchanged:
            shown["note"] = "No changes yet."
        elif not form.url:
            shown["note"] = "Enter the URL to send to."
        if found.body is not None and not unchanged:
            path, shown["command"] = self.commands(context, form, found.body, new=view is None)
            shown["curl"] = curl(f"{context.server}/api/v1/{path}", found.body, key=self._site.keys.required)
        return {"shown": shown, **found.more}

    async def form(
        self,
        context: RequestContext,
        form: R,
        *,
        view: Any = None,
        problem: TocsinError | None = None,
        words: str | None = None,
        existing: Any = None,
        past: int | None = None,
        **values: Any,
    ) -> Response:
        """The page. `existing` is something else with the same id and `past` a time in the past: both make the page ask.
        `words` explain a problem that is not one of a field."""
        shown = await self._shown(context, form, view)
        checked = context.request.method == "POST" and problem is None
        errors = shown["shown"]["errors"] if checked else by_field(problem, self.prefix)
        asks = existing is not None or past is not None
        if words is None:
            words = "" if problem is None or isinstance(problem, InvalidInput) else str(problem)
        return self._pages.page(
            f"{self.kind}s/form.html",
            context,
            409 if asks else 200 if problem is None else problem_kind(problem).status,
            title=f"New {self.kind}" if view is None else f"Edit {self.kind}",
            kind=self.kind,
            form=form,
            view=view,
            errors=errors,
            problem=words,
            existing=existing,
            free="" if existing is None else fresh_id(form.id, self._id_chars_max),
            past=past,
            labels=self.labels,
            first_invalid=next((name for name in self.labels if name in errors), "") if problem else "",
            fresh=view is None and problem is None and not asks,
            refused=problem is not None,
            methods=self.methods,
            settled=set(),
            **{"present_form": "", **shown, **await self.values(context, form, existing), **values},
        )


class CallbackEditing(Editing[F], Generic[F, V]):
    """Creating and editing what has a callback: timers and schedules."""

    #: The path of the page of what has this namespace and id.
    page_path: Callable[[str, str], str]
    #: The equivalent `tocsin` command for a request to a server.
    command: Callable[[str, Mapping[str, Any]], str]

    def routes(self) -> Sequence[RouteEntry]:
        path = f"/{self.kind}s/edit"
        return [*super().routes(), ("GET", path, self.edit), ("POST", path, self.change)]

    @abstractmethod
    async def get(self, namespace: str, id: str) -> V:
        """What is stored."""

    @abstractmethod
    def form_of(self, view: V) -> F:
        """The form for editing it."""

    @abstractmethod
    def version(self, view: V) -> str:
        """What the form keeps of what it is filled from, to find out whether that has been changed meanwhile."""

    @abstractmethod
    async def update(self, context: RequestContext, form: F, body: Body) -> int | None:
        """Changes what is stored by an API request. If the form has a time in the past that it does not confirm yet, that
        time, and nothing is changed. Raises InvalidInput, TimerNotPending, ScheduleEnded, VersionConflict."""

    def outdated(self, form: F, view: V) -> bool:
        return form.version != self.version(view)

    def permit(self, context: RequestContext, role: Role, form: F) -> None:
        context.permit(role, form.namespace)

    async def stored(self, context: RequestContext, form: F) -> V | None:
        return await self.get(form.namespace, form.id) if context.form.get("mode") == "edit" else None

    async def new(self, context: RequestContext) -> Response:
        query = context.query
        if "like" in query:
            namespace, original = query.exact("namespace"), query.exact("like")
            context.permit(Role.WRITE, namespace)
            form = self.form_of(await self.get(namespace, original))
            form.when, form.like_namespace, form.like = "in", namespace, original
            form.id = fresh_id(original, self._id_chars_max)
        else:
            namespace = query.exact("namespace").strip("*")
            namespace = namespace or preferred(await self.visible_namespaces(context, Role.WRITE))
            context.permit(Role.WRITE, namespace)
            form = self.empty(context, namespace)
            form.url, form.id = query.get("url"), f"{self.kind}-{uuid.uuid4().hex[:8]}"
        return await self.form(context, form)

    def empty(self, context: RequestContext, namespace: str) -> F:
        """The form to begin with."""
        return self.form_type(namespace=namespace)

    def sent(self, context: RequestContext) -> F:
        """The form that was submitted to create something. Raises Forbidden."""
        form = self.form_type.read(context.form)
        form.id = context.form.exact("instead") or form.id
        context.permit(Role.WRITE, form.namespace)
        return form

    async def edit(self, context: RequestContext) -> Response:
        """The form with what is stored."""
        view = await self.get(*context.writable(context.query))
        form = self.form_of(view)
        form.version = self.version(view)
        return await self.form(context, form, view=view)

    async def change(self, context: RequestContext) -> Response:
        """Updates the fields that differ, unless others have changed some since the form was opened."""
        form = self.form_type.read(context.form)
        context.permit(Role.WRITE, form.namespace)
        view = await self.get(form.namespace, form.id)
        if self.only_checked(context):
            return await self.form(context, form, view=view)
        try:
            if self.outdated(form, view):
                raise VersionConflict(f"the {self.kind} was changed since the form was opened")
            body = form.changes(view)
            past = await self.update(context, form, body) if len(body) > 2 else None
        except (InvalidInput, TimerNotPending, ScheduleEnded) as error:
            return await self.form(context, form, view=view, problem=error)
        except VersionConflict as error:
            present = with_query(f"/{self.kind}s/edit", {"namespace": form.namespace, "id": form.id})
            words = outdated_words(self.kind)
            return await self.form(context, form, view=view, problem=error, words=words, present_form=present)
        return self.done(form, "updated") if past is None else await self.form(context, form, view=view, past=past)

    def commands(self, context: RequestContext, form: F, body: Body, *, new: bool) -> tuple[str, str]:
        return f"{self.kind}s/{'create' if new else 'update'}", self.command(context.server, body)

    def done(self, form: F, notice: str) -> Response:
        """Leads to the page of what is stored now, with a notice."""
        return RedirectResponse(with_query(self.page_path(form.namespace, form.id), {"notice": notice}), 303)

    async def values(self, context: RequestContext, form: F, existing: V | None) -> dict[str, Any]:
        return {"namespaces": await self.visible_namespaces(context, Role.WRITE)}

"""Creating and editing what has a callback, timers and schedules: the flow of their forms."""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from starlette.responses import HTMLResponse, RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import InvalidInput, ScheduleEnded, TimerNotPending
from tocsin.model.validation import METHODS
from tocsin.timers.schedules import ScheduleView
from tocsin.timers.service import TimerView
from tocsin.web.pages.callback_forms import CallbackForm
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.forms import RETRY_LABELS, Body, by_field, curl, fresh_id
from tocsin.web.pages.presentation import with_query
from tocsin.web.pages.site import Part, RouteEntry, preferred

F = TypeVar("F", bound=CallbackForm)
V = TypeVar("V", TimerView, ScheduleView)


class Editing(Part, Generic[F, V]):
    """The form, with the equivalent API request and the equivalent commands beside it."""

    #: What is edited: `timer` or `schedule`.
    kind: ClassVar[str]
    equivalent_path: ClassVar[str]
    #: The labels of the fields by their names in the API, in their order on the page.
    labels: ClassVar[Mapping[str, str]]
    form_type: type[F]
    #: The path of the page of what has this namespace and id.
    page_path: Callable[[str, str], str]
    #: The equivalent `tocsin` command for a request to a server.
    command: Callable[[str, Mapping[str, Any]], str]

    def routes(self) -> Sequence[RouteEntry]:
        path = f"/{self.kind}s"
        return [
            ("GET", f"{path}/new", self.new),
            ("POST", f"{path}/new", self.create),
            ("GET", f"{path}/edit", self.edit),
            ("POST", f"{path}/edit", self.change),
            ("POST", self.equivalent_path, self.equivalent),
        ]

    # ------------------------------------------------------------------ what is edited

    @abstractmethod
    async def get(self, namespace: str, id: str) -> V:
        """What is stored."""

    @abstractmethod
    def form_of(self, view: V) -> F:
        """The form for editing it."""

    @abstractmethod
    async def create(self, context: RequestContext) -> Response:
        """Stores what the form describes, or shows the form again with its errors or with a question. The form keeps all
        input."""

    @abstractmethod
    async def update(self, context: RequestContext, form: F, body: Body) -> int | None:
        """Changes what is stored by an API request. If the form has a time in the past that it does not confirm yet, that
        time, and nothing is changed. Raises InvalidInput, TimerNotPending, ScheduleEnded."""

    @abstractmethod
    async def beside(self, context: RequestContext, form: F, view: V | None) -> dict[str, Any]:
        """The values shown next to the form: equivalent commands, errors, and the plan of attempts."""

    @abstractmethod
    def values(self, context: RequestContext, form: F, existing: V | None) -> dict[str, Any]:
        """Further values for the form's template."""

    # ------------------------------------------------------------------ handlers

    async def new(self, context: RequestContext) -> Response:
        """An empty form, or with `like` a copy under a new id."""
        query = context.query
        if "like" in query:
            namespace, original = query.exact("namespace"), query.exact("like")
            context.permit(Role.WRITE, namespace)
            form = self.form_of(await self.get(namespace, original))
            form.when, form.like_namespace, form.like = "in", namespace, original
            form.id = fresh_id(original, self._id_chars_max)
        else:
            namespace = query.exact("namespace") or preferred(await self.visible_namespaces(context, Role.WRITE))
            context.permit(Role.WRITE, namespace)
            form = self.form_type(namespace=namespace, url=query.get("url"))
            form.id = f"{self.kind}-{uuid.uuid4().hex[:8]}"
        return await self.form(context, form)

    def sent(self, context: RequestContext) -> F:
        """The form that was submitted to create something. Raises Forbidden."""
        form = self.form_type.read(context.form)
        form.id = context.form.exact("instead") or form.id
        context.permit(Role.WRITE, form.namespace)
        return form

    async def edit(self, context: RequestContext) -> Response:
        """The form with what is stored."""
        view = await self.get(*context.writable(context.query))
        return await self.form(context, self.form_of(view), view=view)

    async def change(self, context: RequestContext) -> Response:
        """Updates the fields that differ."""
        form = self.form_type.read(context.form)
        context.permit(Role.WRITE, form.namespace)
        view = await self.get(form.namespace, form.id)
        if context.form.get("preview"):
            return await self.form(context, form, view=view)
        try:
            body = form.changes(view)
            past = await self.update(context, form, body) if len(body) > 2 else None
        except (InvalidInput, TimerNotPending, ScheduleEnded) as error:
            return await self.form(context, form, view=view, problem=error)
        return self.done(form, "updated") if past is None else await self.form(context, form, view=view, past=past)

    async def equivalent(self, context: RequestContext) -> Response:
        """What is shown next to the form, for the script that requests it on input."""
        form = self.form_type.read(context.form)
        context.permit(Role.READ, form.namespace)
        view = await self.get(form.namespace, form.id) if context.form.get("mode") == "edit" else None
        values = await self.beside(context, form, view)
        return HTMLResponse(self._pages.text(f"{self.kind}s/equivalent.html", context, values))

    def commands(self, context: RequestContext, body: Body, *, new: bool) -> dict[str, str]:
        """The curl and the `tocsin` command that send an API request."""
        server = str(context.request.base_url).rstrip("/")
        url = f"{server}/api/v1/{self.kind}s/{'create' if new else 'update'}"
        return {"curl": curl(url, body, key=self._site.keys.required), "command": self.command(server, body)}

    def done(self, form: F, notice: str) -> Response:
        """Leads to the page of what is stored now, with a notice."""
        return RedirectResponse(with_query(self.page_path(form.namespace, form.id), {"notice": notice}), 303)

    async def form(
        self,
        context: RequestContext,
        form: F,
        *,
        view: V | None = None,
        problem: InvalidInput | TimerNotPending | ScheduleEnded | None = None,
        existing: V | None = None,
        past: int | None = None,
    ) -> Response:
        """The page. `existing` is something else with the same id and `past` a time in the past: both make the page ask."""
        errors = by_field(problem)
        fine = problem is None and existing is None and past is None
        return self._pages.page(
            f"{self.kind}s/form.html",
            context,
            200 if fine else 400 if isinstance(problem, InvalidInput) else 409,
            title=f"New {self.kind}" if view is None else f"Edit {self.kind}",
            form=form,
            view=view,
            errors=errors,
            problem="" if problem is None or isinstance(problem, InvalidInput) else str(problem),
            existing=existing,
            free="" if existing is None else fresh_id(form.id, self._id_chars_max),
            past=past,
            labels=self.labels,
            retry_labels=RETRY_LABELS,
            first_invalid=next((name for name in self.labels if name in errors), ""),
            fresh=view is None and fine,
            namespaces=await self.visible_namespaces(context, Role.WRITE),
            methods=METHODS,
            equivalent=await self.beside(context, form, view),
            **self.values(context, form, existing),
        )

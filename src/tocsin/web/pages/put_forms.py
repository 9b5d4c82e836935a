"""The forms of what is put as a whole under a name: calendars, rules of flows, credentials and monitors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import Conflict, InvalidInput, NotFound, VersionConflict
from tocsin.web.pages.context import Fields, RequestContext, whole_number
from tocsin.web.pages.forms import KEPT, Body, outdated_words
from tocsin.web.pages.presentation import with_query
from tocsin.web.pages.site import Part, RouteEntry, preferred


class PutForm(Part):
    """The form that creates and changes one. The pages are at the plural of its kind, and its template is there, too. A form
    has the version that it was filled from, and changes no other: it would undo what others have changed since."""

    #: What the form is of, in a sentence.
    kind: ClassVar[str]
    #: What its principal has to be in the namespace.
    role: ClassVar[Role] = Role.WRITE
    #: The field that names it within its namespace: why a new one can't have a name, and the error if there are too many.
    name_field: ClassVar[str]
    taken: ClassVar[str]
    too_many: ClassVar[tuple[type[Conflict], ...]] = ()
    #: What a form keeps that is refused because it is outdated.
    kept: ClassVar[str] = KEPT
    #: The labels of the fields by their names in the API, in their order on the page.
    labels: ClassVar[Mapping[str, str]]

    def routes(self) -> Sequence[RouteEntry]:
        new, edit = f"/{self.kind}s/new", f"/{self.kind}s/edit"
        own: list[RouteEntry] = [
            ("POST", new, self._handler(self.create)),
            ("GET", edit, self._handler(self.edit)),
            ("POST", edit, self._handler(self.replace)),
        ]
        return [*own, *super().routes()]

    def permit_change(self, context: RequestContext, namespace: str) -> None:
        """Raises Forbidden unless the principal may put one in the namespace."""
        context.permit(self.role, namespace)

    @abstractmethod
    async def stored(self, namespace: str, name: str) -> dict[str, str]:
        """The fields of the one of that name, and its `version`. Raises NotFound."""

    @abstractmethod
    async def put(self, context: RequestContext, fields: dict[str, str], expected: Body) -> Response | None:
        """Does what the fields ask for, as a request to the API with these members more; None: the list is shown then. Raises
        InvalidInput and Conflict."""

    def sent(self, form: Fields) -> dict[str, str]:
        """The fields of a submitted form."""
        return {name: form.get(name) for name in self.labels}

    def errors(self, error: InvalidInput) -> dict[str, str]:
        """The reasons by the fields of the form."""
        return {each.path: each.reason for each in error.errors}

    async def create(self, context: RequestContext) -> Response:
        """Creates what the form describes. One that exists is not replaced."""
        return await self._put(context, edited=False)

    async def edit(self, context: RequestContext) -> Response:
        """The form with what is stored."""
        namespace, name = context.query.exact("namespace"), context.query.exact(self.name_field)
        self.permit_change(context, namespace)
        return await self.form(context, await self.stored(namespace, name), edited=True)

    async def replace(self, context: RequestContext) -> Response:
        """Puts what the form describes in place of the present one."""
        return await self._put(context, edited=True)

    async def _put(self, context: RequestContext, *, edited: bool) -> Response:
        fields = self.sent(context.form) | {"version": context.form.get("version")}
        self.permit_change(context, fields["namespace"])
        # A new one must not replace one that somebody else has just created.
        expected = whole_number(fields["version"]) if edited else 0
        try:
            if edited and not expected:
                raise VersionConflict("the form does not have the version that it was filled from")
            response = await self.put(context, fields, {"expectedVersion": expected})
        except InvalidInput as error:
            return await self.form(context, fields, edited=edited, errors=self.errors(error), status=400)
        except (VersionConflict, NotFound) as error:
            if edited:
                problem = outdated_words(self.kind, self.kept, what_happened="changed or deleted")
                return await self.form(context, fields, edited=True, problem=problem, status=409)
            if isinstance(error, NotFound):
                raise
            return await self.form(context, fields, edited=False, errors={self.name_field: self.taken}, status=409)
        except self.too_many as error:
            return await self.form(context, fields, edited=edited, errors={self.name_field: str(error)}, status=409)
        return response or self.listed(fields["namespace"])

    def listed(self, namespace: str) -> Response:
        """Leads to the list of a namespace."""
        return RedirectResponse(with_query(f"/{self.kind}s", {"namespace": namespace}), 303)

    async def form(
        self,
        context: RequestContext,
        fields: dict[str, str],
        *,
        edited: bool,
        errors: Mapping[str, str] | None = None,
        problem: str = "",
        status: int = 200,
    ) -> Response:
        """The page with these fields, and what is wrong with them; `problem` is what is wrong with none of them."""
        namespaces, errors = await self.visible_namespaces(context, self.role), errors or {}
        return self._pages.page(
            f"{self.kind}s/form.html",
            context,
            status,
            title=f"{'Edit' if edited else 'New'} {self.kind}",
            form=fields | {"namespace": fields["namespace"] or preferred(namespaces)},
            edited=edited,
            namespaces=namespaces,
            errors=errors,
            problem=problem,
            present_form=with_query(
                f"/{self.kind}s/edit", {"namespace": fields["namespace"], self.name_field: fields[self.name_field]}
            )
            if problem
            else "",
            labels=self.labels,
            first_invalid=next((each for each in self.labels if each in errors), ""),
            **self.values(fields),
        )

    def values(self, fields: Mapping[str, str]) -> dict[str, Any]:
        """Further values for the form's template."""
        return {}

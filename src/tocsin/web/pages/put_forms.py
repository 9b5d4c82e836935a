"""The forms of what is put as a whole under a name, such as a calendar or the rule of a flow."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.errors import Conflict, InvalidInput, VersionConflict
from tocsin.web.pages.context import Fields, RequestContext
from tocsin.web.pages.forms import Body
from tocsin.web.pages.presentation import with_query
from tocsin.web.pages.site import Part, RouteEntry, preferred


class PutForm(Part):
    """The form that creates and changes one. The pages are at the plural of its kind, and its template is there, too."""

    #: What the form is of, in a sentence.
    kind: ClassVar[str]
    #: The field that names it within its namespace: why a new one can't have a name, and the error if there are too many.
    name_field: ClassVar[str]
    taken: ClassVar[str]
    too_many: ClassVar[type[Conflict]]
    #: The labels of the fields by their names in the API, in their order on the page.
    labels: ClassVar[Mapping[str, str]]

    def routes(self) -> Sequence[RouteEntry]:
        own: list[RouteEntry] = [
            ("POST", f"/{self.kind}s/new", self._handler(self.create)),
            ("POST", f"/{self.kind}s/edit", self._handler(self.replace)),
        ]
        return [*own, *super().routes()]

    @abstractmethod
    def permit_change(self, context: RequestContext, namespace: str) -> None:
        """Raises Forbidden unless the principal may put one in the namespace."""

    @abstractmethod
    def body(self, fields: dict[str, str]) -> Body:
        """The request to the API that the fields stand for."""

    @abstractmethod
    async def put(self, context: RequestContext, body: bytes) -> str:
        """Does what the request asks for; returns its namespace. Raises InvalidInput and Conflict."""

    def sent(self, form: Fields) -> dict[str, str]:
        """The fields of a submitted form."""
        return {name: form.get(name) for name in self.labels}

    def errors(self, error: InvalidInput) -> dict[str, str]:
        """The reasons by the fields of the form."""
        return {each.path: each.reason for each in error.errors}

    async def create(self, context: RequestContext) -> Response:
        """Creates what the form describes. One that exists is not replaced."""
        return await self._put(context, edited=False)

    async def replace(self, context: RequestContext) -> Response:
        """Puts what the form describes in place of the present one."""
        return await self._put(context, edited=True)

    async def _put(self, context: RequestContext, *, edited: bool) -> Response:
        fields = self.sent(context.form)
        self.permit_change(context, fields["namespace"])
        try:
            # A new one must not replace one that somebody else has just created.
            expected = {} if edited else {"expectedVersion": 0}
            namespace = await self.put(context, msgspec.json.encode(self.body(fields) | expected))
        except InvalidInput as error:
            return await self.form(context, fields, edited=edited, errors=self.errors(error), status=400)
        except (VersionConflict, self.too_many) as error:
            reason = self.taken if isinstance(error, VersionConflict) else str(error)
            return await self.form(context, fields, edited=edited, errors={self.name_field: reason}, status=409)
        return RedirectResponse(with_query(f"/{self.kind}s", {"namespace": namespace}), 303)

    async def form(
        self,
        context: RequestContext,
        fields: dict[str, str],
        *,
        edited: bool,
        errors: Mapping[str, str] | None = None,
        status: int = 200,
    ) -> Response:
        """The page with these fields, and what is wrong with them."""
        namespaces, errors = await self.visible_namespaces(context), errors or {}
        return self._pages.page(
            f"{self.kind}s/form.html",
            context,
            status,
            title=f"{'Edit' if edited else 'New'} {self.kind}",
            form=fields | {"namespace": fields["namespace"] or preferred(namespaces)},
            edited=edited,
            namespaces=namespaces,
            errors=errors,
            labels=self.labels,
            first_invalid=next((each for each in self.labels if each in errors), ""),
            **self.values(),
        )

    def values(self) -> dict[str, Any]:
        """Further values for the form's template."""
        return {}

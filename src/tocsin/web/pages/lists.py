"""A list of timers, schedules or calls: its page, the rows that a script fetches, and its live updates."""

from __future__ import annotations

import asyncio
import json
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar
from urllib.parse import quote

import msgspec
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from tocsin.model.access import EVERY, Role
from tocsin.model.errors import FieldError, InvalidInput, TocsinError, Unavailable
from tocsin.model.timer import Timer
from tocsin.statistics.counting import ChangeCounter
from tocsin.timers.schedules import ScheduleListRequest
from tocsin.timers.service import ListRequest
from tocsin.web.http.errors import Forbidden, problem_kind
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.counts import Numbers
from tocsin.web.pages.filters import CUSTOM_RANGE, ListFilters
from tocsin.web.pages.outages import Outage
from tocsin.web.pages.pages import compressed, render_rows
from tocsin.web.pages.presentation import count
from tocsin.web.pages.site import Part, RouteEntry

F = TypeVar("F", bound=ListFilters)
R = TypeVar("R")
S = TypeVar("S")
Q = TypeVar("Q", ListRequest, ScheduleListRequest)
#: Namespaces in which an id is looked up at once, a read of the store for each.
_LOOKED_UP_MAX = 100
#: How long a list is read while the node knows that the database does not answer, or too slowly.
_OUTAGE_READ_S = 1.0
#: Statuses of errors that a list shows in its place; other errors have a page of their own.
_SHOWN_STATUSES = (400, 404, 503)
_names_decoder = msgspec.json.Decoder(list[tuple[str, str]])
_keys_decoder = msgspec.json.Decoder(list[str])


def key_of(timer: Timer) -> str:
    """What names a row of a list: a namespace's name has no slash."""
    return f"{timer.namespace}/{timer.id}"


def _sent(context: RequestContext, name: str, decoder: msgspec.json.Decoder[list[S]], most: int) -> list[S]:
    """What an open page sends of its rows. Raises InvalidInput."""
    try:
        sent = decoder.decode(context.form.exact(name))
    except msgspec.DecodeError:
        raise InvalidInput(FieldError(name, "is not a list of ids")) from None
    if len(sent) > most:
        raise InvalidInput(FieldError(name, f"has more than {most} entries"))
    return sent


class TimeBudget:
    """The time that a search may take. A search makes at least one read, however small its budget."""

    def __init__(self, timeout_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._until = monotonic() + timeout_s

    @property
    def spent(self) -> bool:
        """Whether the time has run out."""
        return self._monotonic() >= self._until


@dataclass(frozen=True, slots=True)
class Listing(Generic[R]):
    """A page of a list. `exact` are the rows whose id equals the search text; they are not in `rows`. `reached` is how
    far an unfinished search has come: an instant, or an id where the list is in the order of ids. `unsorted`: it has too many
    rows for the order that was asked for, and is in its usual one."""

    rows: Sequence[R]
    cursor: str | None = None
    reached: int | str | None = None
    exact: Sequence[R] = ()
    unsorted: bool = False

    @property
    def all(self) -> list[R]:
        """All rows on the page."""
        return [*self.rows, *self.exact]

    @property
    def empty(self) -> bool:
        """Whether the list is empty, with no further pages."""
        return not self.all and self.cursor is None


async def in_order(
    lists: Callable[[Q], Awaitable[tuple[list[R], str | None]]],
    request: Q,
    budget: TimeBudget,
    reached: Callable[[str], int | str],
) -> Listing[R]:
    """The page of `request` in the order of the service's lists, or the part of it that was found within the time budget.
    `reached` returns how far a list's cursor has read. Raises InvalidInput for a bad cursor."""
    rows: list[R] = []
    cursor = request.cursor
    while True:
        found, cursor = await lists(replace(request, cursor=cursor, limit=request.limit - len(rows), reads_max=1))
        rows += found
        if cursor is None or len(rows) >= request.limit:
            return Listing(rows, cursor)
        if budget.spent:
            return Listing(rows, cursor, reached(cursor))


class ListPart(Part, Generic[F, R]):
    """The list and its parts. A subclass defines what is listed; its templates are in the folder `kind`. `version` returns
    the version of a row, and `change_counter` that of a scope."""

    kind: str
    title: str
    rows_path: str
    live_path: str
    filters_type: type[F]
    version: Callable[[R], str]
    #: What `choices` returns, as far as it is known without the store.
    no_choices: ClassVar[Mapping[str, Any]]
    #: Whether the rows are service calls, which may have a database of their own.
    of_calls: ClassVar[bool] = False

    def routes(self) -> Sequence[RouteEntry]:
        path = self.filters_type.path
        parts = [
            ("GET", path, self.list),
            ("GET", f"/ui/more{path}", self.more),
            ("POST", f"/ui/fresh{path}", self.fresh),
            ("GET", f"/ui/tabs{path}", self.tabs),
            ("POST", self.rows_path, self.rows),
        ]
        # The stream also works on a node that has no changes to report: the page then reloads its rows periodically.
        streams = ("GET", self.live_path, self._handler(self.live, relayed=False))
        return [*super().routes(), *((method, path, self._handler(each)) for method, path, each in parts), streams]

    # ------------------------------------------------------------------ what is listed

    @abstractmethod
    async def filters(self, context: RequestContext) -> F:
        """The filters in the URL. Raises Forbidden unless the principal may read their scope."""

    @abstractmethod
    async def find(self, context: RequestContext, filters: F) -> Listing[R]:
        """The page of the list that the filters select. Raises InvalidInput."""

    @abstractmethod
    async def find_ids(self, context: RequestContext, filters: F) -> tuple[Sequence[str], bool]:
        """The ids on the page of the list that the filters select, and whether more follow."""

    @abstractmethod
    async def get_many(self, context: RequestContext, scope: str, ids: Sequence[str]) -> Mapping[str, R]:
        """What is stored under the ids."""

    def subject(self, key: str) -> str:
        """The key of what an open page's row is about. It differs from the row's own key if the row shows what has ended, of
        something that may go on: such a row stays what it is, with a remark of what became of its subject since."""
        return key

    @abstractmethod
    def belongs(self, row: R, view: str) -> bool:
        """Whether a tab lists the row; an unknown one lists all."""

    async def completed(self, changed: list[R]) -> Sequence[R]:
        """Rows that an open page gets, in their order, with what the list itself leaves out because it takes long to read."""
        return changed

    @abstractmethod
    def permit(self, context: RequestContext, scope: str) -> bool:
        """Whether the principal may change what is in the scope. Raises Forbidden unless it may read it."""

    @abstractmethod
    def change_counter(self, context: RequestContext, scope: str) -> ChangeCounter:
        """Counts the changes to what the principal may read in the scope."""

    @abstractmethod
    async def choices(self, context: RequestContext, filters: F) -> dict[str, Any]:
        """Further values for the templates."""

    @abstractmethod
    async def count(self, context: RequestContext, scope: str) -> Numbers:
        """How many rows each tab has, by its name."""

    # ------------------------------------------------------------------ handlers

    async def list(self, context: RequestContext) -> Response:
        """The page, or for a script the results and what changes with them above."""
        filters = await self.filters(context)
        problem: TocsinError | None = None
        listing: Listing[R] = Listing(())
        outage = await self._site.outages.present()
        counting = asyncio.ensure_future(self._numbers(context, filters))
        choices = self.no_choices
        try:
            # While the database does not answer, nobody waits for it for long.
            async with asyncio.timeout(None if outage is None else _OUTAGE_READ_S):
                listing = await self.find(context, filters)
                choices = await self.choices(context, filters)
        except TimeoutError:
            problem = Unavailable("the list can't be read now")
        except TocsinError as error:
            if problem_kind(error).status not in _SHOWN_STATUSES:
                raise
            problem, outage = error, await self._site.outages.of(error, of_calls=self.of_calls) or outage
        finally:
            # It has waited as long as the list was read, or ends soon.
            numbers = await counting
        if problem is not None and problem_kind(problem).status != 503:
            choices = await self.choices(context, filters)
        return await self._shown(context, filters, listing, problem, outage, numbers, choices)

    async def unread(self, context: RequestContext) -> Response:
        """The page while nothing can be listed because of an outage."""
        filters, problem = await self.filters(context), Unavailable("the list can't be read now")
        outage = await self._site.outages.present()
        return await self._shown(context, filters, Listing(()), problem, outage, {}, self.no_choices)

    async def _shown(
        self,
        context: RequestContext,
        filters: F,
        listing: Listing[R],
        problem: TocsinError | None,
        outage: Outage | None,
        numbers: Numbers,
        choices: Mapping[str, Any],
    ) -> Response:
        unread = problem is not None and problem_kind(problem).status == 503
        sent = context.query.exact("q")
        # Somebody may be typing the last word, unless it is one of those that the field offers.
        word = filters.last_word(sent) if context.typing else ""
        offered = (*filters.errors, *(f"ns:{each.name}" for each in choices.get("namespaces", ())))
        taken = not word or word in offered
        if filters.elsewhere and taken:
            place = filters.link(scope=filters.elsewhere)
            return Response(headers={"hx-redirect": place}) if context.fragment else RedirectResponse(place, 303)
        values: dict[str, Any] = {
            "title": self.title,
            "problem": problem,
            "outage": outage,
            "unread": unread,
            "taken": taken,
            "custom_range": CUSTOM_RANGE,
            "limits": self._limits,
            # Those of before an outage are not the present ones.
            "numbers": {} if unread else numbers,
            "rows_path": self.rows_path,
            "live": f"{self.live_path}?{filters.scope_name}={quote(filters.scope, safe='')}",
            **self._rows_values(context, filters, listing),
            **choices,
        }
        template = f"{self.kind}/results.html" if context.fragment else f"{self.kind}/list.html"
        # A script shows errors as a part of the page, and ignores responses with another status.
        status = 200 if context.fragment or problem is None else problem_kind(problem).status
        response = await render_rows(filters.rows, lambda: self._pages.page(template, context, status, **values))
        response.headers["vary"] = "hx-request, accept-encoding"
        if context.fragment:
            response.headers["hx-push-url"] = filters.link(cursor=filters.cursor)
            if taken and sent.split() != filters.search.split():
                # Its words are chips now. The field may already contain more than was sent.
                response.headers["hx-trigger"] = json.dumps({"tocsin:taken": {"sent": sent, "left": filters.search}})
        return response

    async def _numbers(self, context: RequestContext, filters: F) -> Numbers:
        """The counts of the tabs; none for a list that is narrowed otherwise, which they would not be true of."""
        if filters.narrowed:
            return {}
        key = context.principal.key
        of = (self.kind, filters.scope, None if key is None else (key.namespaces, key.tenants))
        return await self._site.counts.of(of, lambda: self.count(context, filters.scope))

    async def more(self, context: RequestContext) -> Response:
        """The next rows of an open list, and the link to the rows after them."""
        filters = await self.filters(context)
        values = self._rows_values(context, filters, await self.find(context, filters))
        return await self._rows(context, filters.rows, "more.html", values)

    async def fresh(self, context: RequestContext) -> Response:
        """In words, how many rows the list would now start with, or continue with after its cursor, that an open page lacks.
        The page sends the keys of its first rows; `whole`: it has no others."""
        filters = await self.filters(context)
        known = frozenset(_sent(context, "known", _keys_decoder, self._limits.list_rows_max))
        ids, more = await self.find_ids(context, filters)
        # A run that has ended is no new row if the page still has it as what was pending.
        ended = known.difference(ids)
        had = [each in known or self.subject(each) in ended for each in ids]
        # Those after the last one that both have come by scrolling. If they share none, those of a list that begins with the
        # latest are new.
        both = [place for place, each in enumerate(had) if each]
        end = both[-1] if both else 0
        if context.form.get("whole") == "yes" or not (both or filters.order == "asc"):
            end = len(ids)
        new = had[:end].count(False)
        words = "or more new" if more and end == len(ids) else "new"
        return PlainTextResponse(f"{count(new)} {words}" if new else "")

    async def tabs(self, context: RequestContext) -> Response:
        """The tabs of an open list, with their present numbers if these are known."""
        filters = await self.filters(context)
        outage = await self._site.outages.present()
        numbers = await self._numbers(context, filters) if outage is None else {}
        return self._pages.page("tabs.html", context, filters=filters, numbers=numbers)

    async def rows(self, context: RequestContext) -> Response:
        """The changed rows of an open page, which sends its ids and versions, the scope and the tab."""
        scope, view = context.form.exact(self.filters_type.scope_name), context.form.get("view")
        may_write = self.permit(context, scope)
        wanted = _sent(context, "rows", _names_decoder, self._limits.list_rows_max)
        subjects = {key: self.subject(key) for key, _ in wanted}
        found = await self.get_many(context, scope, [*dict.fromkeys(subjects.values())])
        present = [(key, known, found[subjects[key]]) for key, known in wanted if subjects[key] in found]
        new = {key: row for key, known, row in present if self.version(row) != known}
        itself = {key: row for key, row in new.items() if subjects[key] == key}
        changed = [*zip(itself, await self.completed([*itself.values()]), strict=True)]
        values = {
            "kind": self.kind,
            "gone": [key for key in subjects if subjects[key] not in found],
            "stay": [(key, row) for key, row in changed if self.belongs(row, view)],
            "leave": [(key, row) for key, row in changed if not self.belongs(row, view)],
            "since": [(key, row, self.version(row)) for key, row in new.items() if key not in itself],
            "may_write": may_write,
        }
        return await self._rows(context, len(wanted), "changed.html", values)

    async def live(self, context: RequestContext) -> Response:
        """Streams to an open page whenever something in its scope changes."""
        scope = context.query.exact(self.filters_type.scope_name)
        self.permit(context, scope)
        return self._site.streams.response(context, lambda: asdict(self.change_counter(context, scope)))

    def _rows_values(self, context: RequestContext, filters: F, listing: Listing[R]) -> dict[str, Any]:
        may_write = self.permit(context, filters.scope)
        return {"kind": self.kind, "filters": filters, "listing": listing, "may_write": may_write}

    async def _rows(self, context: RequestContext, rows: int, template: str, values: dict[str, Any]) -> Response:
        return await render_rows(rows, lambda: compressed(context, self._pages.text(template, context, values)))


class NamespacedList(ListPart[F, R]):
    """The list of what a namespace has, or all that the principal may read. A row is known by its namespace and id."""

    no_choices: ClassVar = {"namespaces": (), "chosen": None, "paused": (), "deleting": ()}

    def change_counter(self, context: RequestContext, scope: str) -> ChangeCounter:
        may = context.principal.may
        return self._site.statistics.change_counter(
            scope, (lambda name: may(Role.READ, name)) if context.principal.is_limited else None
        )

    @abstractmethod
    async def get_named(self, namespace: str, ids: Sequence[str]) -> Mapping[str, R]:
        """What is stored under the ids in a namespace."""

    async def filters(self, context: RequestContext) -> F:
        scope = context.query.exact("namespace") or EVERY
        self.permit(context, scope)
        return self.filters_type.read(context.query, self._limits, scope)

    def permit(self, context: RequestContext, scope: str) -> bool:
        if scope == EVERY:
            if not context.principal.may_somewhere(Role.READ):
                raise Forbidden("Your API key has no access to any namespace.")
            # A key has the same role on all of its namespaces.
            return context.principal.may_somewhere(Role.WRITE)
        context.permit(Role.READ, scope)
        return context.principal.may(Role.WRITE, scope)

    async def get_many(self, context: RequestContext, scope: str, ids: Sequence[str]) -> Mapping[str, R]:
        by_namespace: dict[str, list[str]] = {}
        for key in ids:
            namespace, _, row_id = key.partition("/")
            by_namespace.setdefault(namespace, []).append(row_id)
        found = {}
        for namespace in by_namespace.keys() & {each.name for each in await self.visible_namespaces(context)}:
            rows = await self.get_named(namespace, by_namespace[namespace])
            found.update({f"{namespace}/{row_id}": row for row_id, row in rows.items()})
        return found

    async def named(self, context: RequestContext, filters: F) -> list[R]:
        """The rows whose id equals the search text, on any tab: a lookup instead of a search. In all namespaces, those of the
        first ones."""
        names = [each.name for each in await self.visible_namespaces(context)]
        wanted = names[:_LOOKED_UP_MAX] if filters.several else [name for name in names if name == filters.scope]
        found = await asyncio.gather(*(self.get_named(name, [filters.search]) for name in wanted))
        return [row for rows in found for row in rows.values()]

    async def choices(self, context: RequestContext, filters: F) -> dict[str, Any]:
        namespaces = await self.visible_namespaces(context)
        chosen = next((known for known in namespaces if known.name == filters.scope), None)
        held = [each for each in namespaces if each.held and filters.scope in (each.name, EVERY)]
        return {
            "namespaces": namespaces,
            "chosen": chosen,
            "paused": [each.name for each in held if each.deleting is None],
            "deleting": [each for each in held if each.deleting is not None],
        }

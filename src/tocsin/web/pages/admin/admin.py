"""`/cluster` and `/namespaces`: the nodes and their shards, and the settings of the namespaces."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.model.access import Role
from tocsin.model.errors import InvalidInput, NamespaceExists, NamespaceNotFound, RotationPending
from tocsin.model.instants import US_PER_DAY, US_PER_SECOND, format_duration
from tocsin.model.namespace import Answers, HistoryMode, policy_in_force
from tocsin.web.http import administration as wire
from tocsin.web.http.namespaces import NamespaceRequests
from tocsin.web.http.reading import JsonReader
from tocsin.web.pages.context import RequestContext, whole_number
from tocsin.web.pages.overview.paused import count_due
from tocsin.web.pages.presentation import sentence
from tocsin.web.pages.site import Part, Site, route

#: Colours of owners on the shard map; with more owners, colours repeat.
_OWNER_COLOURS = 8

NOTICES = {
    "created": "Namespace created.",
    "updated": "Namespace updated.",
    "paused": "Namespace paused. Its timers fire when it is resumed.",
    "resumed": "Namespace resumed. Timers that came due during the pause fire now.",
}
_HISTORY_WORDS = {
    HistoryMode.ALL: "all finished timers",
    HistoryMode.FAILURES: "failed timers only",
    HistoryMode.NONE: "none",
}
#: The periods for which the confirmation of a pause counts the timers that come due.
_AHEAD = (("the next hour", 3_600 * US_PER_SECOND), ("the next day", US_PER_DAY))
_ANSWERS_WORDS = {
    Answers.STANDARD: "any 2xx, unless the JSON has ok: false (standard)",
    Answers.STRICT: "2xx with an empty body or ok: true (strict)",
}


_create_reader = JsonReader(wire.CreateNamespace)
_update_reader = JsonReader(wire.UpdateNamespace)
_rotate_reader = JsonReader(wire.RotateSecret)


class Administration(Part):
    """The pages of the cluster and the namespaces."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._requests = NamespaceRequests(site.service, site.parser, site.audit)

    @route("GET", "/nodes")
    async def cluster(self, context: RequestContext) -> Response:
        """Nodes and the shard map; a script reloads the live part periodically."""
        context.permit(Role.READ)
        view = await self._service.cluster()
        colours = {node.node: index % _OWNER_COLOURS for index, node in enumerate(view.nodes)}
        template = "admin/cluster_live.html" if context.fragment else "admin/cluster.html"
        return self._pages.page(template, context, title="Nodes", cluster=view, colours=colours)

    @route("GET", "/namespaces")
    async def namespaces(self, context: RequestContext) -> Response:
        """All namespaces that the principal may read."""
        return await self._namespaces(context)

    async def _namespaces(
        self,
        context: RequestContext,
        *,
        problem: Exception | None = None,
        form: dict[str, str] | None = None,
        name: str = "",
        rotated: tuple[str, str] | None = None,
    ) -> Response:
        status = 200
        if problem is not None:
            status = 409 if isinstance(problem, NamespaceExists | RotationPending) else 400
        cluster = await self._service.cluster()
        return self._pages.page(
            "admin/namespaces.html",
            context,
            status,
            title="Namespaces",
            namespaces=await self.visible_namespaces(context),
            may_admin=context.principal.may(Role.ADMIN),
            total_shards=cluster.total_shards,
            history_words=_HISTORY_WORDS,
            answers_words=_ANSWERS_WORDS,
            policy_in_force=policy_in_force,
            duration=format_duration,
            problem=None if problem is None else sentence(problem),
            problem_name=name,
            rotated=rotated,
            form=form or {"name": "", "num_shards": "", "history": "all", "retention": "3d", "secret": ""},
            notice_text=NOTICES.get(context.query.get("notice"), ""),
        )

    @route("POST", "/namespaces/create")
    async def create(self, context: RequestContext) -> Response:
        """Creates a namespace."""
        context.permit(Role.ADMIN)
        form = {name: context.form.get(name) for name in ("name", "num_shards", "history", "retention", "secret")}
        body: dict[str, Any] = {"name": form["name"], "history": form["history"]}
        if form["num_shards"]:
            body["numShards"] = (
                whole_number(form["num_shards"]) if form["num_shards"].isdecimal() else form["num_shards"]
            )
        body |= {name: form[name] for name in ("retention", "secret") if form[name]}
        try:
            await self._requests.create(_create_reader.read(msgspec.json.encode(body)), context.actor)
        except (InvalidInput, NamespaceExists) as error:
            return await self._namespaces(context, problem=error, form=form)
        return RedirectResponse("/namespaces?notice=created", 303)

    @route("POST", "/namespaces/change")
    async def change(self, context: RequestContext) -> Response:
        """Updates the settings of a namespace, or pauses or resumes it."""
        context.permit(Role.ADMIN)
        body: dict[str, Any] = {"name": context.form.exact("name")}
        notice = "updated"
        if context.form.get("paused") == "yes" and context.form.get("confirmed") != "yes":
            return await self._confirm_pause(context, body["name"])
        if "paused" in context.form:
            body["paused"] = context.form.get("paused") == "yes"
            notice = "paused" if body["paused"] else "resumed"
        wanted = ("history", "retention", "secret", "answers")
        body |= {name: context.form.get(name) for name in wanted if context.form.get(name)}
        if context.form.get("unsign") == "yes":
            body["secret"] = None
        try:
            await self._requests.update(_update_reader.read(msgspec.json.encode(body)), context.actor)
        except (InvalidInput, NamespaceNotFound) as error:
            return await self._namespaces(context, problem=error, name=body["name"])
        return RedirectResponse(f"/namespaces?notice={notice}", 303)

    @route("POST", "/namespaces/rotate")
    async def rotate(self, context: RequestContext) -> Response:
        """Replaces the signing secret. Only this response shows the new secret."""
        context.permit(Role.ADMIN)
        body: dict[str, Any] = {"name": context.form.exact("name"), "force": context.form.get("force") == "yes"}
        body |= {"grace": context.form.get("grace")} if context.form.get("grace") else {}
        try:
            sent = _rotate_reader.read(msgspec.json.encode(body))
            _, rotation = await self._requests.rotate(sent, context.actor)
        except (InvalidInput, NamespaceNotFound, RotationPending) as error:
            return await self._namespaces(context, problem=error, name=body["name"])
        return await self._namespaces(context, rotated=(sent.name, rotation.secret))

    async def _confirm_pause(self, context: RequestContext, name: str) -> Response:
        """Asks for confirmation, with the number of timers that come due during a pause."""
        if name not in {each.name for each in await self.visible_namespaces(context)}:
            return await self._namespaces(context, problem=NamespaceNotFound(f"no namespace {name!r}"))
        due = [(words, await count_due(self._service, name, context.now_us + ahead_us)) for words, ahead_us in _AHEAD]
        return self._pages.page("admin/pause.html", context, title="Pause namespace", name=name, due=due)

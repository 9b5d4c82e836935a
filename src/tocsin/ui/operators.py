"""`/cluster` and `/namespaces`: who does the work, and under which rules."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import RedirectResponse, Response

from tocsin.http import wire
from tocsin.http.audit import namespace_details, rotation_details
from tocsin.http.convert import RequestParser
from tocsin.http.reading import JsonReader
from tocsin.model.access import Role
from tocsin.model.audit import AuditAction
from tocsin.model.errors import InvalidInput, NamespaceExists, NamespaceNotFound, RotationPending
from tocsin.model.instants import US_PER_DAY, US_PER_SECOND, format_duration
from tocsin.model.namespace import Answers, HistoryMode, policy_in_force
from tocsin.ports.audit import AuditLog
from tocsin.service import TimerService
from tocsin.ui.listing import ListHandlers
from tocsin.ui.pages import Pages
from tocsin.ui.paused import count_due
from tocsin.ui.visit import Handler, Visit, whole

#: Colours of owners on the map, told apart by number; further owners share them.
_OWNER_COLOURS = 8

SAID = {
    "created": "The namespace exists.",
    "changed": "Changed.",
    "paused": "Paused: its timers wait, and fire late once it is resumed.",
    "resumed": "Resumed: what came due meanwhile fires now.",
}
_HISTORY_WORDS = {
    HistoryMode.ALL: "all finished timers",
    HistoryMode.FAILURES: "failed ones only",
    HistoryMode.NONE: "none",
}
#: Over which times the question before a pause counts what comes due.
_AHEAD = (("the next hour", 3_600 * US_PER_SECOND), ("the next day", US_PER_DAY))
_ANSWERS_WORDS = {
    Answers.STANDARD: "any 2xx, unless its body says otherwise",
    Answers.STRICT: "a 2xx without a body, or with ok: true",
}


class OperatorPages:
    """Pages for those who run the service."""

    def __init__(
        self, service: TimerService, parser: RequestParser, pages: Pages, lists: ListHandlers, audit: AuditLog
    ) -> None:
        self._audit = audit
        self._service = service
        self._parser = parser
        self._pages = pages
        self._lists = lists
        self._create_reader = JsonReader(wire.CreateNamespace)
        self._update_reader = JsonReader(wire.UpdateNamespace)
        self._rotate_reader = JsonReader(wire.RotateSecret)

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths, handlers."""
        return [
            ("GET", "/cluster", self.cluster),
            ("GET", "/namespaces", self.namespaces),
            ("POST", "/namespaces/create", self.create),
            ("POST", "/namespaces/change", self.change),
            ("POST", "/namespaces/rotate", self.rotate),
        ]

    async def cluster(self, visit: Visit) -> Response:
        """Nodes, and the map of shards; a script asks for the changing part again every second."""
        visit.permit(Role.READ)
        view = await self._service.cluster()
        colours = {node.node: index % _OWNER_COLOURS for index, node in enumerate(view.nodes)}
        template = "cluster_live.html" if visit.fragment else "cluster.html"
        return self._pages.page(template, visit, title="Cluster", cluster=view, colours=colours)

    async def namespaces(self, visit: Visit) -> Response:
        """All that the visitor may see."""
        return await self._namespaces(visit)

    async def _namespaces(
        self,
        visit: Visit,
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
            "namespaces.html",
            visit,
            status,
            title="Namespaces",
            namespaces=await self._lists.visible_namespaces(visit),
            may_admin=visit.visitor.may(Role.ADMIN),
            total_shards=cluster.total_shards,
            history_words=_HISTORY_WORDS,
            answers_words=_ANSWERS_WORDS,
            policy_in_force=policy_in_force,
            duration=format_duration,
            problem=None if problem is None else _sentence(problem),
            problem_name=name,
            rotated=rotated,
            form=form or {"name": "", "num_shards": "", "history": "all", "retention": "3d", "secret": ""},
            said=SAID.get(visit.query.get("did"), ""),
        )

    async def create(self, visit: Visit) -> Response:
        """A new one."""
        visit.permit(Role.ADMIN)
        form = {name: visit.form.get(name) for name in ("name", "num_shards", "history", "retention", "secret")}
        body: dict[str, Any] = {"name": form["name"], "history": form["history"]}
        if form["num_shards"]:
            body["numShards"] = whole(form["num_shards"]) if form["num_shards"].isdecimal() else form["num_shards"]
        body |= {name: form[name] for name in ("retention", "secret") if form[name]}
        try:
            sent = self._create_reader.read(msgspec.json.encode(body))
            settings = self._parser.namespace_settings(sent)
            await self._service.create_namespace(
                sent.name,
                num_shards=None if sent.num_shards is msgspec.UNSET else sent.num_shards,
                history=None if sent.history is msgspec.UNSET else sent.history,
                retention_us=settings.retention_us,
                secret=None if sent.secret is msgspec.UNSET else sent.secret,
            )
        except (InvalidInput, NamespaceExists) as error:
            return await self._namespaces(visit, problem=error, form=form)
        await self._audit.write(AuditAction.NAMESPACE_CREATED, visit.actor, sent.name, namespace_details(sent))
        return RedirectResponse("/namespaces?did=created", 303)

    async def change(self, visit: Visit) -> Response:
        """Changes history, retention, secret, or whether it is paused."""
        visit.permit(Role.ADMIN)
        body: dict[str, Any] = {"name": visit.form.exact("name")}
        did = "changed"
        if visit.form.get("paused") == "yes" and visit.form.get("sure") != "yes":
            return await self._ask_before_pause(visit, body["name"])
        if "paused" in visit.form:
            body["paused"] = visit.form.get("paused") == "yes"
            did = "paused" if body["paused"] else "resumed"
        wanted = ("history", "retention", "secret", "answers")
        body |= {name: visit.form.get(name) for name in wanted if visit.form.get(name)}
        if visit.form.get("unsign") == "yes":
            body["secret"] = None
        try:
            sent = self._update_reader.read(msgspec.json.encode(body))
            settings = self._parser.namespace_settings(sent)
            await self._service.update_namespace(
                sent.name,
                history=None if sent.history is msgspec.UNSET else sent.history,
                retention_us=settings.retention_us,
                secret=sent.secret if isinstance(sent.secret, str) else None,
                remove_secret=sent.secret is None,
                paused=None if sent.paused is msgspec.UNSET else sent.paused,
                answers=None if sent.answers is msgspec.UNSET else sent.answers,
            )
        except (InvalidInput, NamespaceNotFound) as error:
            return await self._namespaces(visit, problem=error, name=body["name"])
        await self._audit.write(AuditAction.NAMESPACE_CHANGED, visit.actor, sent.name, namespace_details(sent))
        return RedirectResponse(f"/namespaces?did={did}", 303)

    async def rotate(self, visit: Visit) -> Response:
        """Replaces the signing secret. The answer shows the new one, and nothing shows it again."""
        visit.permit(Role.ADMIN)
        body: dict[str, Any] = {"name": visit.form.exact("name"), "force": visit.form.get("force") == "yes"}
        body |= {"grace": visit.form.get("grace")} if visit.form.get("grace") else {}
        try:
            sent = self._rotate_reader.read(msgspec.json.encode(body))
            rotation = self._parser.namespace_rotation(sent)
            await self._service.rotate_secret(sent.name, rotation.secret, rotation.grace_us, force=rotation.force)
        except (InvalidInput, NamespaceNotFound, RotationPending) as error:
            return await self._namespaces(visit, problem=error, name=body["name"])
        details = rotation_details("namespace", rotation)
        await self._audit.write(AuditAction.SECRET_ROTATED, visit.actor, sent.name, details)
        return await self._namespaces(visit, rotated=(sent.name, rotation.secret))

    async def _ask_before_pause(self, visit: Visit, name: str) -> Response:
        """Says first what a pause comes to."""
        if name not in {each.name for each in await self._lists.visible_namespaces(visit)}:
            return await self._namespaces(visit, problem=NamespaceNotFound(f"no namespace {name!r}"))
        due = [(words, await count_due(self._service, name, visit.now_us + ahead_us)) for words, ahead_us in _AHEAD]
        return self._pages.page("pause.html", visit, title="Pause a namespace", name=name, due=due)


def _sentence(error: Exception) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."

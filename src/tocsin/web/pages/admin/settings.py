"""`/settings`: every setting in force, with its source. Nothing is changed here."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import Response

from tocsin.model.access import Role
from tocsin.model.setting import SettingInForce
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.site import Part, Site, route


class SettingsTable(Part):
    """The table, by group. `settings` are those of this node."""

    def __init__(self, site: Site, settings: Sequence[SettingInForce]) -> None:
        super().__init__(site)
        self._settings = settings

    @route("GET", "/settings")
    async def table(self, context: RequestContext) -> Response:
        """The settings of which the search is a part of the name or the description, all or those that something sets."""
        context.permit(Role.ADMIN)
        search, changed = context.query.get("q"), context.query.get("view") == "changed"
        wanted = search.casefold()
        found = [
            each for each in self._settings if wanted in f"{each.name} {each.variable} {each.description}".casefold()
        ]
        set_here = [each for each in found if each.source]
        groups: dict[str, list[SettingInForce]] = {}
        for each in set_here if changed else found:
            groups.setdefault(each.topic.title, []).append(each)
        return self._pages.page(
            "admin/settings.html",
            context,
            title="Settings",
            groups=groups,
            search=search,
            changed=changed,
            numbers=(len(found), len(set_here)),
        )

"""`/nodes`: the nodes and their shards."""

from __future__ import annotations

from starlette.responses import Response

from tocsin.model.access import Role
from tocsin.timers.explaining import PAUSE_TEXTS
from tocsin.timers.service import ClusterView
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.site import Part, route

#: Colours of owners on the shard map; with more owners, colours repeat.
_OWNER_COLOURS = 8


class Administration(Part):
    """The page of the cluster."""

    @route("GET", "/nodes")
    async def cluster(self, context: RequestContext) -> Response:
        """Nodes and the shard map; a script reloads the live part periodically."""
        context.permit(Role.READ)
        view = await self._service.cluster()
        colours = {node.node: index % _OWNER_COLOURS for index, node in enumerate(view.nodes)}
        template = "admin/cluster_live.html" if context.fragment else "admin/cluster.html"
        return self._pages.page(
            template,
            context,
            title="Nodes",
            polled=True,
            cluster=view,
            paused_words=_paused_words(view),
            colours=colours,
        )


def _paused_words(view: ClusterView) -> str:
    """Why this node fires nothing; empty if it fires."""
    reason = view.dispatch_paused_reason
    return "" if view.dispatching or reason is None else PAUSE_TEXTS.get(reason, reason)

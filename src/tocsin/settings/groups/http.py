"""Requests of clients, and the web pages."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from tocsin.model.instants import US_PER_SECOND
from tocsin.settings.groups.base import Group
from tocsin.settings.values import Bytes, Count, Duration, seconds
from tocsin.web.api.request import ApiLimits
from tocsin.web.pages.limits import UiLimits

_API, _UI = ApiLimits(), UiLimits()


class Requests(Group):
    """Connections and requests of clients."""

    title: ClassVar[str] = "Client requests"
    intro: ClassVar[str] = "How many connections clients may have, and how large and slow their requests may be."

    api_connections_max: Count | None = Field(
        None,
        description="Connections of clients that a process accepts. At the limit it closes the connection whose client "
        "has kept the server waiting longest; if all are being served, the new one. Unset: what the limit on "
        "open files leaves beside callbacks, stores and other nodes (at least half of it), at most 10,000. "
        "Higher values serve more clients at once, for more memory.",
    )
    keep_alive_timeout: Duration = Field(
        75 * US_PER_SECOND,
        description="How long a client's idle connection is kept open; responses announce it, rounded up to seconds. "
        "Keep it longer than the keep-alive timeout of a proxy in front, so that the proxy is the side that closes.",
    )
    api_request_head_timeout: Duration = Field(
        seconds(_API.request_head_timeout_s),
        description="How long a request line and its headers may take to arrive, counted from the first byte. Lower "
        "values disconnect slow clients sooner.",
    )
    api_request_read_timeout: Duration = Field(
        seconds(_API.request_read_timeout_s),
        description="How long a request's body may take to arrive. Lower values disconnect slow or stalled uploads "
        "sooner.",
    )
    api_request_bytes_max: Bytes = Field(
        _API.request_bytes_max,
        description="Bytes of a request's body, batches aside; a larger one is answered 413. Keep it above "
        "`payload_bytes_max`; higher values take more memory for each request.",
    )
    api_batch_request_bytes_max: Bytes = Field(
        _API.batch_request_bytes_max,
        description="Bytes of a batch's body; a larger one is answered 413. Higher values take more memory for each "
        "batch.",
    )
    api_batch_items_max: Count = Field(
        _API.batch_items_max,
        description="Timers in one batch. Higher values need fewer requests, each of which takes longer.",
    )
    api_request_bodies_bytes_max: Bytes = Field(
        _API.request_bodies_bytes_max,
        description="Memory for bodies that have begun to arrive and are incomplete, all connections together, in "
        "bytes; one client address gets half of it. Bodies that arrive in one piece need none. Higher values serve "
        "more slow uploads.",
    )
    api_unread_responses_bytes_max: Bytes = Field(
        _API.unread_responses_bytes_max,
        description="Memory of a process for responses that clients have not read yet, all connections together, in "
        "bytes; one client address gets half of it. Above it, the connections whose clients have not read for longest "
        "are closed. Higher values serve more slow readers at once; with lower values hostile ones take less memory.",
    )

    @property
    def keep_alive_timeout_s(self) -> int:
        """`keep_alive_timeout` in whole seconds, rounded up, as the HTTP server counts."""
        return -(-self.keep_alive_timeout // US_PER_SECOND)


class WebPages(Group):
    """The web pages."""

    title: ClassVar[str] = "Web pages"
    intro: ClassVar[str] = "What the web pages show and accept."

    ui_form_bytes_max: Bytes = Field(
        _UI.form_bytes_max,
        description="Bytes of a form on the web pages; a larger one is refused. Keep it above `payload_bytes_max`, "
        "because a form contains the payload. Higher values take more memory for each form that is sent.",
    )
    ui_streams_max: Count = Field(
        _UI.streams_max,
        description="Open pages that a node updates live; further ones show changes after a reload. Higher values "
        "take more connections and processor time.",
    )
    ui_chart_interval: Duration = Field(
        seconds(_UI.chart_interval_s),
        description=f"Width of one point on the overview's charts, which have {_UI.chart_points} points: at the "
        "default they reach back one hour. Higher values reach further back in coarser steps.",
    )
    ui_list_search_timeout: Duration = Field(
        seconds(_UI.list_search_timeout_s),
        description="How long a list of timers searches for matches before it shows what it found; an open page "
        "continues on its own. Higher values show more at once and answer later.",
    )
    ui_cancel_timers_max: Count = Field(
        _UI.cancel_timers_max,
        description="Timers that one request of the pages' bulk action cancels. Higher values need fewer requests, "
        "each of which takes longer.",
    )

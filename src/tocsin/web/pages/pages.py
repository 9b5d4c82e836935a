"""Renders templates to responses. Templates escape all values except the output of macros."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.responses import Response

from tocsin import __version__
from tocsin.build_info import short_commit
from tocsin.model.access import Role
from tocsin.model.redaction import redact_url
from tocsin.model.retry import RetryPolicy
from tocsin.model.schedule_words import ELAPSED
from tocsin.model.timer import Timer
from tocsin.model.visible import visible, visible_name
from tocsin.web.http.access import Keyring
from tocsin.web.http.errors import DOCS_URL
from tocsin.web.http.schedules import sentence
from tocsin.web.pages import presentation
from tocsin.web.pages.admin.sessions import Principal, masked
from tocsin.web.pages.assets import Assets
from tocsin.web.pages.calls import presentation as calls
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.filters import utc_field
from tocsin.web.pages.outages import RUNBOOK, Outage
from tocsin.web.pages.schedules import outcomes
from tocsin.web.pages.schedules import presentation as schedules


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """An entry of the rail. `permits` returns whether a principal has a role, here `read`, on what the page shows; `scoped`:
    the page shows one namespace if the scope is one. `open`: it needs no sign-in. `number`:
    where the number beside it is found. `spare`: on a phone, whose bar has room for five, it is behind “More”."""

    path: str
    title: str
    icon: str
    permits: Callable[[Principal, str], bool]
    scoped: bool = False
    open: bool = False
    number: str = ""
    spare: bool = False


def _is_admin(principal: Principal, _role: str) -> bool:
    return principal.may(Role.ADMIN)


def _may_anywhere(principal: Principal, role: str) -> bool:
    return principal.may_somewhere(role) or principal.may_call_somewhere(role)


#: Shown where there is an inbox.
INBOX_PATH = "/inbox"
#: What people work with, and what they work on, by the heading of the group.
NAVIGATION = {
    "": (
        NavigationEntry("/", "Now", "now", Principal.may, scoped=True),
        NavigationEntry("/timers", "Timers", "clock", Principal.may_somewhere, scoped=True),
        NavigationEntry("/schedules", "Schedules", "calendar", Principal.may_somewhere, scoped=True),
        NavigationEntry("/calendars", "Calendars", "dates", Principal.may_somewhere, scoped=True, spare=True),
        NavigationEntry("/calls", "Calls", "send", Principal.may_call_somewhere),
        NavigationEntry(
            "/monitors",
            "Monitors",
            "monitors",
            Principal.may_somewhere,
            scoped=True,
            number="/ui/monitors",
            spare=True,
        ),
    ),
    "Trouble": (
        NavigationEntry("/failures", "Failures", "failures", _may_anywhere, scoped=True, number="/ui/failures"),
        NavigationEntry("/destinations", "Destinations", "destinations", Principal.may),
        NavigationEntry("/flows", "Flows", "flows", Principal.may_somewhere, scoped=True),
        NavigationEntry(INBOX_PATH, "Inbox", "inbox", _is_admin, scoped=True, number="/ui/inbox"),
        NavigationEntry("/jobs", "Jobs", "jobs", _may_anywhere, scoped=True),
    ),
    "System": (
        NavigationEntry("/nodes", "Nodes", "nodes", Principal.may),
        NavigationEntry("/store", "Store", "store", Principal.may),
        NavigationEntry("/namespaces", "Namespaces", "layers", Principal.may_somewhere),
        NavigationEntry("/keys", "Keys", "key", _is_admin),
        NavigationEntry("/audit", "Audit", "audit", _is_admin),
        NavigationEntry("/settings", "Settings", "settings", _is_admin),
        NavigationEntry("/docs", "API reference", "book", lambda _principal, _role: True, open=True),
    ),
}

#: The paths whose address has the scope.
SCOPED_PATHS = frozenset(entry.path for entries in NAVIGATION.values() for entry in entries if entry.scoped)

#: Smaller responses are not compressed: they fit into one packet anyway.
_COMPRESSED_BYTES_MIN = 1_024
#: Rows of a list that are rendered on the event loop.
_ROWS_AT_ONCE = 100


class Pages:
    """Renders templates. `keys` indicates whether sign-in is required; `policy_of` returns the retry policy in force for a
    timer, `is_paused` whether a namespace is paused; `issuer` is the identity provider's URL, if there is one; `inbox`:
    whether there is an inbox."""

    def __init__(
        self,
        assets: Assets,
        *,
        keys: Keyring,
        policy_of: Callable[[Timer], RetryPolicy],
        is_paused: Callable[[str], bool],
        issuer: str | None,
        inbox: bool,
    ) -> None:
        self.assets = assets
        self._keys = keys
        self._environment = environment = Environment(
            loader=PackageLoader("tocsin.web.pages", "templates"),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        environment.globals.update(
            asset=assets.url,
            identity_provider=None if issuer is None else urlsplit(issuer).hostname,
            docs=DOCS_URL,
            runbook=RUNBOOK,
            navigation={
                group: tuple(entry for entry in entries if inbox or entry.path != INBOX_PATH)
                for group, entries in NAVIGATION.items()
            },
            version=__version__,
            commit=short_commit(),
            calls=calls,
            schedules=schedules,
            outcomes=outcomes,
            schedule_sentence=sentence,
            # What a list has no room for.
            elapsed=ELAPSED,
            state_of=lambda view, now_us: presentation.state_of(view, now_us, paused=is_paused(view.timer.namespace)),
            relative=presentation.relative,
            parted=presentation.parted,
            tabs_of=presentation.tabs_of,
            timer_path=presentation.timer_path,
            failures_like=presentation.failures_like,
        )
        environment.filters.update(
            utc=presentation.utc,
            utc_field=utc_field,
            id_width=presentation.id_width,
            rfc3339=presentation.rfc3339,
            span=presentation.span,
            at_most=presentation.at_most,
            whole_span=presentation.whole_span,
            latency=presentation.milliseconds,
            count=presentation.count,
            host_and_path=presentation.host_and_path,
            version_of=presentation.version,
            row_key=presentation.row_key,
            shown_version=lambda view: presentation.shown_version(view, paused=is_paused(view.timer.namespace)),
            instants_in=presentation.instants_in,
            pretty_json=presentation.pretty_json,
            raw_body=presentation.raw_body,
            bytes_of=bytes,
            policy_of=policy_of,
            redacted_url=redact_url,
            initial=presentation.initial,
            visible=visible,
            visible_name=visible_name,
        )

    def text(self, template: str, context: RequestContext, values: Mapping[str, Any]) -> str:
        """The rendered text."""
        principal = context.principal
        return self._environment.get_template(template).render(
            {
                "context": context,
                "principal": principal,
                "csrf": masked(principal.csrf),
                "now_us": context.now_us,
                "signed_in": principal.key is not None,
                "keys_required": self._keys.required,
                "insecure": self._keys.insecure,
                "live": None,
                "polled": False,
                "outage": None,
                **values,
            }
        )

    def outage(self, outage: Outage | None) -> str:
        """What is out, for the script of an open page; empty if nothing is."""
        return "" if outage is None else self._environment.get_template("outage.html").render(outage=outage)

    def page(self, template: str, context: RequestContext, status: int = 200, **values: Any) -> Response:
        """The rendered template as a response."""
        return compressed(context, self.text(template, context, values), status)


async def render_rows(rows: int, render: Callable[[], Response]) -> Response:
    """The response of `render`, which renders `rows` rows: in a thread if they are many, to keep the event loop free."""
    return render() if rows <= _ROWS_AT_ONCE else await asyncio.to_thread(render)


def compressed(
    context: RequestContext, text: str | bytes, status: int = 200, media_type: str = "text/html"
) -> Response:
    """A response, compressed if the browser accepts that.

    The length of a compressed response can leak a secret that stands next to text an attacker chooses (BREACH), if the
    attacker can make a signed-in browser repeat the request. Other sites can't: the cookie is `SameSite=Strict`. The one
    secret worth the effort, the CSRF token, is masked differently in each response (`sessions.masked`).
    """
    body, headers = text.encode() if isinstance(text, str) else text, {"vary": "accept-encoding"}
    if len(body) >= _COMPRESSED_BYTES_MIN and "gzip" in context.request.headers.get("accept-encoding", ""):
        body = gzip.compress(body, compresslevel=1)
        headers["content-encoding"] = "gzip"
    return Response(body, status, headers, media_type)


def toast(text: str, tone: str = "done") -> dict[str, str]:
    """The header with which the response to a script shows a toast. The value is ASCII, whatever the text."""
    return {"hx-trigger": json.dumps({"tocsin:toast": {"text": text, "tone": tone}})}

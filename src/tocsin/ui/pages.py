"""Templates to answers. Everything a template shows is escaped unless it is one of our own macros."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.responses import Response

from tocsin import __version__
from tocsin.http.access import Keyring
from tocsin.model.access import Role
from tocsin.model.redaction import redact_url
from tocsin.model.retry import RetryPolicy
from tocsin.model.timer import Timer
from tocsin.model.visible import visible, visible_name
from tocsin.ui import show
from tocsin.ui.assets import Assets
from tocsin.ui.calls import show as calls
from tocsin.ui.filters import utc_field
from tocsin.ui.sessions import Visitor, masked
from tocsin.ui.visit import Visit


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of the navigation. `kind` says who sees it: `timers` whoever may read any namespace, `calls` any tenant,
    `whole` those whose key is limited to neither."""

    path: str
    title: str
    icon: str
    kind: str

    def shown_to(self, visitor: Visitor) -> bool:
        """Whether it leads this visitor anywhere."""
        if self.kind == "timers":
            return visitor.may_somewhere(Role.READ)
        return visitor.may_call_somewhere(Role.READ) if self.kind == "calls" else visitor.may(Role.READ)


PLACES = (
    Place("/", "Overview", "pulse", "whole"),
    Place("/timers", "Timers", "bell", "timers"),
    Place("/calls", "Calls", "send", "calls"),
    Place("/cluster", "Cluster", "grid", "whole"),
    Place("/namespaces", "Namespaces", "layers", "timers"),
)

#: Below this size one packet takes the answer as it is.
_PACKED_BYTES_MIN = 1_024
#: Rows of a list that are rendered on the event loop.
_ROWS_AT_ONCE = 100


class Pages:
    """Renders. `keys`: whether people sign in here; `policy_of`: the retry policy in force for a timer."""

    def __init__(self, assets: Assets, *, keys: Keyring, policy_of: Callable[[Timer], RetryPolicy]) -> None:
        self.assets = assets
        self._keys = keys
        self._environment = environment = Environment(
            loader=PackageLoader("tocsin.ui", "templates"),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        environment.globals.update(asset=assets.url, places=PLACES, version=__version__, state_of=show.state_of)
        environment.filters.update(
            utc=show.utc,
            utc_field=utc_field,
            room=show.id_room,
            rfc3339=show.rfc3339,
            span=show.span,
            latency=show.milliseconds,
            count=show.count,
            destination=show.destination,
            version_of=show.version,
            pretty_json=show.pretty_json,
            raw_body=show.raw_body,
            bytes_of=bytes,
            policy_of=policy_of,
        )
        environment.globals.update(
            relative=show.relative, parted=show.parted, timer_path=show.timer_path, call_path=calls.path
        )
        environment.globals.update(call_state=calls.state_of, call_finished=calls.finished, star_tag=calls.STAR)
        environment.filters.update(
            call_version=calls.version,
            call_lag=calls.lag_us,
            call_took=calls.took_us,
            call_waits=calls.waits,
            call_awaited=calls.awaited_at,
            call_attempt=calls.attempt,
            policy_words=calls.policy_words,
            call_target=calls.target,
            call_answer=calls.answer_of,
            short_id=calls.short,
            redacted_headers=calls.redacted,
            redacted_url=redact_url,
            visible=visible,
            visible_name=visible_name,
        )

    def text(self, template: str, visit: Visit, values: Mapping[str, Any]) -> str:
        """The rendered text."""
        visitor = visit.visitor
        return self._environment.get_template(template).render(
            {
                "visit": visit,
                "visitor": visitor,
                "csrf": masked(visitor.csrf),
                "now_us": visit.now_us,
                "signed_in": visitor.key is not None,
                "keys_required": self._keys.required,
                "insecure": self._keys.insecure,
                "live": None,
                **values,
            }
        )

    def page(self, template: str, visit: Visit, status: int = 200, **values: Any) -> Response:
        """An answer."""
        return packed(visit, self.text(template, visit, values), status)


async def by_rows(rows: int, make: Callable[[], Response]) -> Response:
    """The answer that `make` makes of so many rows: many take longer than timers may wait, and are made in a thread."""
    return make() if rows <= _ROWS_AT_ONCE else await asyncio.to_thread(make)


def packed(visit: Visit, text: str | bytes, status: int = 200, media_type: str = "text/html") -> Response:
    """An answer that is compressed where the browser takes it.

    Beside text that others choose, the length of what was compressed tells about secrets in the same answer (BREACH), if
    somebody can have a signed-in browser ask for it again and again. Other sites can't: the cookie is `SameSite=Strict`. And
    the one secret that would be worth it, the token of a form, is masked anew in each answer (`sessions.masked`).
    """
    body, headers = text.encode() if isinstance(text, str) else text, {"vary": "accept-encoding"}
    if len(body) >= _PACKED_BYTES_MIN and "gzip" in visit.request.headers.get("accept-encoding", ""):
        body = gzip.compress(body, compresslevel=1)
        headers["content-encoding"] = "gzip"
    return Response(body, status, headers, media_type)


def toast(text: str, tone: str = "done") -> dict[str, str]:
    """The header by which a fragment's answer says what happened; ASCII, whatever the text."""
    return {"hx-trigger": json.dumps({"tocsin:said": {"text": text, "tone": tone}})}

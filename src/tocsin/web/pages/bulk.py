"""Actions on many selected timers or calls: asked about first, then done by one request. More are changed by a job."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from starlette.responses import Response

from tocsin.model.errors import FieldError, InvalidInput, TocsinError
from tocsin.web.pages.context import RequestContext
from tocsin.web.pages.pages import Pages
from tocsin.web.pages.presentation import host_and_path

#: Those whose names are shown; the rest is counted.
_NAMED_MAX = 8
#: Destinations that are shown.
_HOSTS_MAX = 4
#: Concurrent changes.
_PER_TURN = 100


class Action(NamedTuple):
    """An action and its words. Of each pair the first is about one timer or call, the second about several."""

    path: str
    noun: str
    verb: str
    done: str
    means: tuple[str, str]
    #: Why it does not apply to some of those that are selected.
    other: tuple[str, str]
    none: str
    #: What follows when it is done.
    after: str
    #: Whether it takes something away.
    takes: bool = False


class Target(NamedTuple):
    """What an action applies to: its id, how it is named on the page, its page, and the URL that it calls."""

    id: str
    name: str
    path: str
    url: str


class NotDone(NamedTuple):
    """What could not be changed, and why."""

    target: Target
    reason: str


def selected(context: RequestContext, action: Action, most: int) -> list[str]:
    """The distinct ids of the form. Raises InvalidInput if they are none or too many."""
    found = list(dict.fromkeys(context.form.all("id")))
    if not found:
        raise InvalidInput(FieldError("", f"no {action.noun} is selected"))
    if len(found) > most:
        wrong = f"{len(found)} {action.noun}s are too many for one request; the maximum is {most}"
        raise InvalidInput(FieldError("", f"{wrong}. Select fewer, or all that match, which a job changes"))
    return found


async def ask_or_change(
    pages: Pages,
    context: RequestContext,
    action: Action,
    targets: Sequence[Target],
    other: int,
    change: Callable[[str], Awaitable[object]],
    reason: Callable[[TocsinError], str],
) -> Response:
    """Shows what the action would change, and to how many of those selected it does not apply; if that is confirmed, changes
    the targets and shows the result. A page, or a dialog's content for a script."""
    confirmed = context.form.get("confirmed") == "yes"
    refused = await _change(targets, change, reason) if confirmed else []
    back, lists = context.form.exact("back"), f"/{action.noun}s"
    response = pages.page(
        "bulk.html",
        context,
        title=f"{action.verb} {action.noun}s",
        action=action,
        targets=targets,
        other=other,
        confirmed=confirmed,
        refused=refused,
        hosts=Counter(host_and_path(target.url)[0] for target in targets).most_common(),
        named_max=_NAMED_MAX,
        hosts_max=_HOSTS_MAX,
        back=back if back.partition("?")[0] == lists else lists,
    )
    if confirmed:
        response.headers["hx-trigger"] = "tocsin:many"
    return response


async def _change(
    targets: Sequence[Target],
    change: Callable[[str], Awaitable[object]],
    reason: Callable[[TocsinError], str],
) -> list[NotDone]:
    """Changes each. Returns those that could not be changed, in their order."""
    refused: list[NotDone] = []
    for start in range(0, len(targets), _PER_TURN):
        turn = targets[start : start + _PER_TURN]
        outcomes = await asyncio.gather(*(change(target.id) for target in turn), return_exceptions=True)
        for target, outcome in zip(turn, outcomes, strict=True):
            if isinstance(outcome, TocsinError):
                refused.append(NotDone(target, reason(outcome)))
            elif isinstance(outcome, BaseException):
                raise outcome
    return refused

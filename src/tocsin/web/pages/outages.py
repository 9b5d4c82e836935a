"""What a page states while timers are not fired, or the database does not answer: which one, since when, what that means, and
what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tocsin.model.errors import StoreCallFailed, TocsinError
from tocsin.timers.explaining import PAUSE_TEXTS
from tocsin.timers.service import TimerService
from tocsin.web.pages.overview.nodes import Nodes, Pause

#: The anchor of the runbook of nodes that fire nothing, below the docs.
RUNBOOK = "runbooks/TocsinNothingFires"


class Outage(NamedTuple):
    """What is out, and what it means. `since_us`: since when nothing fires, if that is known. `as_of_us`: when the database
    last answered, so that what a page shows may be from then; None if it answers."""

    title: str
    text: str
    since_us: int | None = None
    as_of_us: int | None = None


def why(reason: str, database: str) -> str:
    """The reason of a pause of dispatch, as the beginning of a sentence."""
    if reason == "lease":
        return unanswered(database)
    words = PAUSE_TEXTS.get(reason, reason)
    return words[:1].upper() + words[1:]


def was(reason: str, database: str) -> str:
    """The reason of an outage that is over, as the beginning of a sentence."""
    return f"{database} did not answer, or too slowly" if reason == "lease" else why(reason, database)


def unanswered(database: str) -> str:
    """That the database does not answer, as the beginning of a sentence."""
    return f"{database[:1].upper()}{database[1:]} does not answer, or too slowly"


def paused_words(pauses: Sequence[Pause], nodes: int, database: str) -> tuple[str, str]:
    """What the pauses of some or all nodes are, and what that means."""
    reasons = "; ".join(dict.fromkeys(why(pause.reason, database) for pause in pauses))
    if len(pauses) == nodes:
        title = f"{reasons}. Nothing fires."
        meaning = "What comes due waits and fires afterwards; nothing is lost."
    else:
        title = f"{reasons}: {', '.join(pause.node for pause in pauses)} fires nothing."
        meaning = "What comes due there waits until other nodes take over; nothing is lost."
    if any(pause.reason == "lease" for pause in pauses):
        meaning += " Creates and changes fail until the database answers."
    return title, meaning


def is_of_store(error: TocsinError) -> bool:
    """Whether a request failed because a database did not do what was asked."""
    return isinstance(error, StoreCallFailed) or isinstance(error.__cause__, StoreCallFailed)


class Outages:
    """What is out now, for every page. `database` is the store's name and place, `agent_database` that of service calls if it
    is another one."""

    def __init__(self, service: TimerService, nodes: Nodes, database: str, agent_database: str | None) -> None:
        self._service = service
        self._nodes = nodes
        self._database = database
        self._agent_database = agent_database

    async def present(self) -> Outage | None:
        """That this node fires nothing; None while it fires. Only meanwhile are the other nodes asked whether they do."""
        if self._service.paused_reason is None:
            return None
        await self._nodes.refresh()
        present = self._nodes.present()
        if not present.pauses:
            return None
        since = [pause.since_us for pause in present.pauses if pause.since_us is not None]
        unread = any(pause.reason == "lease" for pause in present.pauses)
        as_of_us = min(since) - self._service.node_lease_us if unread and since else None
        title, text = paused_words(present.pauses, present.nodes, self._database)
        return Outage(title, text, min(since, default=None), as_of_us)

    async def of(self, error: TocsinError, *, of_calls: bool = False) -> Outage | None:
        """What an error of a request is due to; None if a database is not the reason. `of_calls`: the request was about
        service calls."""
        if of_calls and self._agent_database is not None:
            text = "Service calls that come due wait and are made afterwards; nothing is lost."
            return Outage(f"{unanswered(self._agent_database)}.", text) if is_of_store(error) else None
        present = await self.present()
        if present is not None or not is_of_store(error):
            return present
        text = (
            "What can’t fire meanwhile waits and fires afterwards; nothing is lost. Creates and changes fail until the"
        )
        return Outage(f"{unanswered(self._database)}.", f"{text} database answers.")

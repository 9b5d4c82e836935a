"""Where a timer is, what it waits for, and what happens next: for the API, the pages and the CLI. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tocsin.model.explanation import Explanation, TimerState, WaitsFor
from tocsin.model.instants import format_duration, format_instant
from tocsin.model.namespace import Namespace
from tocsin.model.timer import Status, Timer
from tocsin.ports.credentials import NoCredentials
from tocsin.ports.forward import REFUSED, UNOPENED, Obstacle, RowPlace, Whereabouts, credential_of
from tocsin.timers.listing import TimerView

#: Reasons of a pause of the dispatcher, as texts.
PAUSE_TEXTS = {
    "starting": "the node is starting",
    "lease": "the database has not confirmed the node's lease in time",
    "clock_skew": "the node's clock differs from the store's",
    "clock_jump": "the node's wall clock jumped",
    "unwritten_results": "too many results of attempts wait to be written",
    "stopped": "the node has stopped",
}


#: What a timer waits for while its owner's dispatcher is paused for a reason; for others, it is the node.
_PAUSES = {
    "lease": WaitsFor.LEASE,
    "clock_skew": WaitsFor.CLOCK,
    "clock_jump": WaitsFor.CLOCK,
    "unwritten_results": WaitsFor.WRITE,
    "stopped": WaitsFor.OWNER,
}

#: What a timer waits for whose flow or destination is paused at its next instant, and what that is called.
_PAUSED = {
    Obstacle.PAUSED_FLOW: (WaitsFor.FLOW, "flow"),
    Obstacle.PAUSED_DESTINATION: (WaitsFor.DESTINATION, "destination"),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What was found out from the owner of the timer's shard: its name, None without one; and what it knows of the timer, or
    why it could not be asked, and since when it has not answered (microseconds)."""

    owner: str | None
    found: Whereabouts | None = None
    failure: str = ""
    since: int | None = None


#: TimerState, what it waits for, what comes next and when, and the sentence.
_Found = tuple[TimerState, WaitsFor | None, int | None, str]


_NO_CREDENTIALS = NoCredentials()
#: Why a credential can't be sent to a destination, as this node knows it: of its namespace, name and destination; None if it
#: can.
CredentialObstacle = Callable[[str, str, str], str | None]


def explain(
    view: TimerView,
    namespace: Namespace,
    asked: Asked,
    now_us: int,
    obstacle: CredentialObstacle = _NO_CREDENTIALS.obstacle,
    pause: tuple[Obstacle, str] | None = None,
) -> Explanation:
    """The explanation of a timer that was read after the owner of its shard was asked; `pause` is what is paused at its next
    instant if that is ahead, its flow or its destination, and the name."""
    state, waits_for, next_at, sentence = _found(view, namespace, asked, now_us, obstacle, pause)
    if state is not TimerState.FINISHED:
        sentence += _about_debounce(view.timer, state) + _about_expiry(view.timer, state, now_us)
    at = view.next_attempt_at
    attempt, since = None, at if at is not None and at <= now_us else None
    if state is TimerState.UNKNOWN:
        since = asked.since
    elif state is TimerState.FIRING:
        found = asked.found
        attempt, since = (found.attempt, found.since) if found is not None and found.attempt else (None, None)
    return Explanation(state, waits_for, next_at, view.shard_id, asked.owner, sentence, attempt, since)


def _found(
    view: TimerView,
    namespace: Namespace,
    asked: Asked,
    now_us: int,
    obstacle: CredentialObstacle,
    pause: tuple[Obstacle, str] | None,
) -> _Found:
    timer, at, found, owner = view.timer, view.next_attempt_at, asked.found, asked.owner
    if timer.status is not Status.PENDING or at is None:
        return _finished(timer, namespace)
    if found is not None and found.place == RowPlace.IN_FLIGHT:
        text = f"Attempt {found.attempt} is in flight on {owner}; without a response it times out at"
        return TimerState.FIRING, WaitsFor.RESPONSE, found.until, f"{text} {format_instant(found.until)}."
    if found is not None and found.place == RowPlace.WRITING:
        return (
            TimerState.WRITING,
            WaitsFor.WRITE,
            None,
            f"{owner} is storing the result of an attempt, or a change of the timer.",
        )
    reason = view.suspended or ""
    if reason.startswith("bad_record"):
        text = f"The timer is suspended, because its stored record can't be read ({reason}). Create it again."
        return TimerState.SUSPENDED, WaitsFor.CREATE, None, text
    if namespace.deleting is not None:
        text = f"Job {namespace.deleting} deletes the namespace {namespace.name}, and the timer with it."
        return TimerState.PAUSED, None, None, text
    if namespace.paused:
        text = f"The namespace {namespace.name} is paused. The timer fires when the namespace is resumed"
        if at <= now_us:
            return TimerState.PAUSED, WaitsFor.NAMESPACE, None, f"{text}; it has been due since {format_instant(at)}."
        return TimerState.PAUSED, WaitsFor.NAMESPACE, at, f"{text}, and not before {format_instant(at)}."
    if (credential := credential_of(reason)) is not None:
        return _without_credential(at, credential[1], obstacle(*credential))
    if reason == REFUSED:
        text = (
            f"The timer has been due since {format_instant(at)} and is suspended, because its URL leads to an address "
            "that this server does not call (EGRESS_REFUSED). It is tried again every 15 minutes, and at once after a "
            "restart with other settings: egress.allow lists further addresses."
        )
        return TimerState.SUSPENDED, WaitsFor.EGRESS, None, text
    if reason == UNOPENED:
        text = (
            f"The timer has been due since {format_instant(at)} and is suspended, because one of its secrets, or of those "
            "that sign it, can't be decrypted (SECRET_UNREADABLE); the log of the node names the key. It is tried again "
            "every 15 minutes, and at once after a restart with the key in secrets.key_file."
        )
        return TimerState.SUSPENDED, WaitsFor.SECRET, None, text
    return _ahead(view, at, asked, pause) if at > now_us else _due(view, at, asked)


def _without_credential(at: int, name: str, obstacle: str | None) -> _Found:
    """The timer is suspended, because its credential can't be sent."""
    why = "it can be sent by now" if obstacle is None else obstacle
    text = (
        f"The timer has been due since {format_instant(at)} and waits for its credential {name}: {why}. Meanwhile no attempt "
        "is made or counted; the next one begins as soon as the credential can be sent."
    )
    return TimerState.SUSPENDED, WaitsFor.CREDENTIAL, None, text


def _finished(timer: Timer, namespace: Namespace) -> _Found:
    ended, kept = timer.executed_at or timer.updated_at, format_duration(namespace.retention_us)
    text = f"The timer has finished: {timer.status} at {format_instant(ended)}. It stays visible for {kept} after that."
    return TimerState.FINISHED, None, None, text


def _ahead(view: TimerView, at: int, asked: Asked, pause: tuple[Obstacle, str] | None) -> _Found:
    """The timer's next instant is in the future."""
    timer, found, when = view.timer, asked.found, format_instant(at)
    waits_for, begins = WaitsFor.INSTANT, f"at {when}"
    if pause is not None:
        waits_for, what = _PAUSED[pause[0]]
        begins = f"when its {what} {pause[1]}, which is paused, is resumed, and not before {when}"
    firing = f"{asked.owner or 'the next owner of its shard'} fires it {begins}."
    if timer.attempts:
        # Also if the retry was in flight when the shard was handed over: its row is that of a retry (ADR 36).
        state, text = (
            TimerState.RETRYING,
            f"Attempt {timer.attempts} failed ({timer.last_error}). The next one begins {begins}.",
        )
    elif at != timer.execute_at:
        text = f"An attempt was in flight when the timer's shard was handed over. Without its result, {firing}"
        return TimerState.FIRING, WaitsFor.RESPONSE, at, text
    elif found is not None and found.place == RowPlace.WINDOW:
        state, text = TimerState.SCHEDULED, f"The timer is in memory; {firing}"
    else:
        state, text = TimerState.SCHEDULED, f"The timer is in the store; {firing}"
    return state, waits_for, at, text + _about_owner(view, asked)


def _about_owner(view: TimerView, asked: Asked) -> str:
    """What is wrong at the owner while the timer need not be fired yet."""
    if asked.owner is None:
        return f" At the moment, shard {view.shard_id} has no owner."
    if asked.found is None:
        return f" {asked.owner} could not be asked: {asked.failure}."
    if asked.found.obstacle == Obstacle.DISPATCH:
        return f" At the moment, {asked.owner} fires nothing: {_pause(asked.found)}."
    return ""


def _due(view: TimerView, at: int, asked: Asked) -> _Found:
    """The timer's instant has come."""
    found, owner, since = asked.found, asked.owner, f"The timer has been due since {format_instant(at)}."
    if owner is None:
        text = f"{since} Its shard {view.shard_id} has no owner at the moment; the next owner fires it."
        return TimerState.BLOCKED, WaitsFor.OWNER, None, text
    if found is None:
        text = (
            f"{since} {owner} owns its shard and could not be asked, so an attempt may be in flight: {asked.failure}."
        )
        return TimerState.UNKNOWN, None, None, text
    if found.obstacle == Obstacle.DISPATCH:
        text = f"{since} {owner} fires nothing at the moment: {_pause(found)}."
        return TimerState.BLOCKED, _PAUSES.get(found.name, WaitsFor.NODE), None, text
    if found.obstacle == Obstacle.HAND_OVER:
        text = f"{since} {owner} is handing over its shard {view.shard_id}, whose next owner fires it."
        return TimerState.BLOCKED, WaitsFor.OWNER, None, text
    waits_for, text = _turn(view, found, owner)
    return TimerState.WAITING, waits_for, None, f"{since} {text}"


def _turn(view: TimerView, found: Whereabouts, owner: str) -> tuple[WaitsFor, str]:
    """What a due timer waits for at an owner that fires timers."""
    namespace = view.timer.namespace
    if found.obstacle == Obstacle.PAUSED_DESTINATION:
        return (
            WaitsFor.DESTINATION,
            f"Its destination {found.name} is paused; it fires when the destination is resumed.",
        )
    if found.obstacle == Obstacle.BREAKER:
        text = f"Nearly all requests to {found.name} failed, so {owner} sends only single probes (its breaker is open); the"
        return WaitsFor.DESTINATION, f"{text} timer fires when these succeed. Waiting uses up no attempt."
    kind, _, name = (view.suspended or "").partition(":")
    if kind == "destination":
        text = f"It waits in the store, because many timers for {name} wait already; {owner} takes it up when there is room."
        return WaitsFor.DESTINATION, text
    if kind == "flow" and found.obstacle not in (Obstacle.FLOW, Obstacle.PAUSED_FLOW):
        text = (
            f"It waits in the store for {_flow(view, name.partition('/')[2])}; {owner} takes it up when there is room."
        )
        return WaitsFor.FLOW, text
    if found.obstacle == Obstacle.PAUSED_FLOW:
        return WaitsFor.FLOW, f"Its flow {found.name} is paused; it fires when the flow is resumed."
    if found.obstacle == Obstacle.FLOW:
        return WaitsFor.FLOW, f"It waits for its turn within the limits of {_flow(view, found.name)}."
    if kind == "namespace":
        text = f"It waits in the store for its namespace {namespace}; {owner} takes it up when there is room."
        return WaitsFor.NAMESPACE, text
    if found.obstacle == Obstacle.DESTINATION:
        return (
            WaitsFor.DESTINATION,
            f"{found.name} has as many requests in flight as it may have; it waits for one to end.",
        )
    if found.obstacle == Obstacle.UNSENT:
        text = f"A request to {found.name} could not be sent from {owner}, which tries again within a second."
        return WaitsFor.DESTINATION, text
    if found.obstacle == Obstacle.NAMESPACE:
        return WaitsFor.NAMESPACE, f"Its namespace {namespace} has its share of the slots of {owner}; one has to end."
    if found.obstacle == Obstacle.NODE:
        return WaitsFor.NODE, f"All slots of {owner} are in use; it waits for one to become free."
    verb = "loads it from the store" if found.place == RowPlace.STORE else "fires it"
    return WaitsFor.NODE, f"{owner} {verb} next."


def _flow(view: TimerView, key: str) -> str:
    return f"its flow {key}" if key else f"its namespace {view.timer.namespace}"


def _pause(found: Whereabouts) -> str:
    return PAUSE_TEXTS.get(found.name, found.name)


def _about_debounce(timer: Timer, state: TimerState) -> str:
    """For which creates a debounced timer will fire, until it has."""
    window = timer.debounced
    if window is None or timer.attempts or state in (TimerState.FIRING, TimerState.WRITING):
        return ""
    creates = "1 create" if window.creates == 1 else f"{window.creates} creates"
    first_at, latest_at = format_instant(window.first_at), format_instant(window.latest_at)
    return f" It is debounced: {creates} since {first_at}; it fires at the latest at {latest_at}."


def _about_expiry(timer: Timer, state: TimerState, now_us: int) -> str:
    limit = timer.expires_at
    if limit is None:
        return ""
    if now_us <= limit:
        return f" No attempt begins after {format_instant(limit)}."
    over = f" No attempt may begin any more, since {format_instant(limit)}"
    return (
        f"{over}."
        if state in (TimerState.FIRING, TimerState.WRITING)
        else f"{over}: the timer ends instead of being fired."
    )

"""`/timers/{namespace}/{id}`: what happened to one timer, what will, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace

from starlette.responses import Response

from tocsin.model.access import Role
from tocsin.model.errors import NamespaceNotFound
from tocsin.model.namespace import Namespace
from tocsin.model.retry import RetryPolicy
from tocsin.model.timer import Attempt, Status
from tocsin.service import ClusterView, ShardView, TimerService, TimerView
from tocsin.ui.names import neighbours
from tocsin.ui.pages import Pages
from tocsin.ui.show import relative, span
from tocsin.ui.statistics import Statistics
from tocsin.ui.visit import Handler, Visit

#: What a page says after an action, by the word that the action leaves in the URL.
SAID = {
    "created": "Created and stored.",
    "replaced": "Replaced: this is what the id stands for now.",
    "changed": "Changed.",
    "canceled": "Canceled. An attempt that was under way may still arrive.",
    "moved": "Moved to its new time.",
    "firing": "It fires now.",
    "again": "This is a new timer with the same settings.",
}


@dataclass(frozen=True, slots=True)
class Step:
    """An entry of the timeline. `attempt` is set for calls; `ahead` for what has not happened yet."""

    at: int
    title: str
    tone: str
    attempt: Attempt | None = None
    ahead: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a timer is and what it waits for, in one sentence; `shard` is None when the cluster can't be asked."""

    sentence: str
    shard: ShardView | None
    paused: bool


class DetailHandlers:
    """The page of one timer."""

    def __init__(self, service: TimerService, pages: Pages, statistics: Statistics, *, id_chars_max: int) -> None:
        self._service = service
        self._pages = pages
        self._statistics = statistics
        self._id_chars_max = id_chars_max

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Methods, paths, handlers. An id may hold slashes, so that this pattern has to stand behind all others."""
        return [("GET", "/timers/{namespace}/{id:path}", self.show)]

    async def show(self, visit: Visit) -> Response:
        """The page, or for a script what changes of it while it is open."""
        parameters = visit.request.path_params
        return await self.of(visit, parameters["namespace"], parameters["id"] or visit.query.exact("id"))

    async def of(
        self, visit: Visit, namespace: str, timer_id: str, *, status: int = 200, problem: str = "", said: str = ""
    ) -> Response:
        """The page of a timer; `problem` says why an action on it was refused."""
        visit.permit(Role.READ, namespace)
        pulse = self._statistics.pulse(namespace)
        view = await self._service.get(namespace, timer_id)
        known = {each.name: each for each in await self._service.namespaces()}.get(namespace)
        if known is None:
            raise NamespaceNotFound(f"no namespace {namespace!r}")
        cluster = await self._service.cluster()
        before, after = neighbours(timer_id, self._id_chars_max)
        runs = await self._service.get_many(namespace, [each for each in (before, after) if each is not None])
        did = visit.query.get("did")
        template = "timers/detail_live.html" if visit.fragment else "timers/detail.html"
        return self._pages.page(
            template,
            visit,
            status,
            title=view.timer.id,
            view=view,
            timer=view.timer,
            steps=held_back(time_line(view, self._service.retry_policy(view.timer), visit.now_us), known, visit.now_us),
            why=explain(view, known, cluster, visit.now_us),
            may_write=visit.visitor.may(Role.WRITE, namespace),
            problem=problem,
            said=said or _said(did, view, known),
            did=did,
            of=visit.query.exact("of"),
            run_before=before if before in runs else None,
            run_after=after if after in runs else None,
            pulse=pulse,
            live=f"/ui/live?namespace={namespace}",
        )


def _said(did: str, view: TimerView, namespace: Namespace) -> str:
    """What the page says of an action that led to it, as far as it is still so."""
    if did == "firing" and view.timer.status is not Status.PENDING:
        return ""
    if did == "firing" and namespace.paused:
        return f"It is due now, and waits: the namespace {namespace.name} is paused. It fires when that is resumed."
    return SAID.get(did, "")


def time_line(view: TimerView, policy: RetryPolicy, now_us: int) -> list[Step]:
    """Everything known about a timer's past and future, the earliest first; `policy` is the one in force for it."""
    timer = view.timer
    steps = [Step(timer.created_at, "Created", "pending")]
    for attempt in timer.attempt_log:
        good = attempt.error is None
        title = f"Answered {attempt.status}" if attempt.status else "No answer"
        steps.append(Step(attempt.at, title, "done" if good else "retrying", attempt))
    seen = {step.at + (step.attempt.duration_us if step.attempt else 0) for step in steps}
    last = max(step.at for step in steps)
    quiet = timer.updated_at > timer.created_at and timer.status is Status.PENDING
    if quiet and not any(abs(timer.updated_at - at) < 1_000_000 for at in seen) and timer.updated_at >= last:
        steps.append(Step(timer.updated_at, "Changed", "pending"))
    steps.extend(_end(view, policy, now_us))
    return steps


def held_back(steps: list[Step], namespace: Namespace, now_us: int) -> list[Step]:
    """The same of a timer whose namespace is paused: what is due does not happen now."""
    last = steps[-1]
    if not namespace.paused or not last.ahead or last.at > now_us:
        return steps
    return [*steps[:-1], replace(last, title="Due", tone="held", note="It waits for the namespace to be resumed.")]


def _end(view: TimerView, policy: RetryPolicy, now_us: int) -> list[Step]:
    timer, at = view.timer, view.next_attempt_at
    if timer.status is Status.COMPLETED:
        return [Step(timer.executed_at or timer.updated_at, "Done", "done")]
    if timer.status is Status.FAILED:
        note = "No attempts are left." if timer.attempts >= policy.max_attempts else "The answer was final."
        return [Step(timer.executed_at or timer.updated_at, "Failed", "failed", note=note)]
    if timer.status is Status.CANCELED:
        return [Step(timer.executed_at or timer.updated_at, "Canceled", "canceled")]
    if at is None:
        return []
    if at <= now_us:
        return [Step(at, "Firing now", "ringing", ahead=True)]
    number = timer.attempts + 1
    title = "Fires" if number == 1 else f"Attempt {number} of {policy.max_attempts}"
    return [Step(at, title, "ringing", ahead=True)]


def explain(view: TimerView, namespace: Namespace, cluster: ClusterView, now_us: int) -> Explanation:
    """Where the timer is and what it waits for."""
    shard = cluster.shards[view.shard_id] if view.shard_id < len(cluster.shards) else None
    return Explanation(_sentence(view, namespace, cluster, shard, now_us), shard, namespace.paused)


def _sentence(view: TimerView, namespace: Namespace, cluster: ClusterView, shard: ShardView | None, now_us: int) -> str:
    timer, at = view.timer, view.next_attempt_at
    if timer.status is not Status.PENDING or at is None:
        kept = span(namespace.retention_us)
        return f"It has finished and waits for nothing. It stays visible for {kept} after its end."
    if namespace.paused:
        return f"The namespace {namespace.name} is paused: its timers wait, and fire when it is resumed."
    if view.suspended is not None:
        return f"It is suspended ({view.suspended}) and comes back by itself when the reason is gone."
    if not cluster.dispatching:
        return f"Nothing fires on this node now: {cluster.dispatch_paused_reason}."
    if shard is None or shard.owner is None:
        return f"Nobody owns shard {view.shard_id} at this moment; its next owner fires what is due."
    if at <= now_us:
        return f"It is due and waits for its turn or its answer on {shard.owner}."
    when = relative(at, now_us)
    if not shard.owned_here:
        return f"It waits in the store; {shard.owner}, which owns its shard, fires it {when}."
    if shard.complete_to is not None and at <= shard.complete_to:
        return f"It is in the memory of {shard.owner}, which fires it {when}."
    return f"It waits in the store; {shard.owner} takes it into memory some minutes before it fires, {when}."

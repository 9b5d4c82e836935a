"""Tools that change what exists, or call again and again: a dry run shows what would happen, and its token confirms it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from msgspec import UNSET, structs

from tocsin.model.audit import AuditAction
from tocsin.web.api.mcp import arguments as wanted
from tocsin.web.api.mcp.answers import Json, row
from tocsin.web.api.mcp.arguments import TwoStepTool
from tocsin.web.api.mcp.caller import ApiRefused, Caller
from tocsin.web.api.mcp.options import INSTANTS_SHOWN


@dataclass(frozen=True, slots=True)
class Plan:
    """What a tool would do: in a sentence, and the rows that it would change or create. `untouched` are those that it would
    leave as they are, and why. Without rows there is nothing to do."""

    sentence: str
    rows: list[Json]
    untouched: list[Json] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TwoSteps:
    """How a tool plans, and how it does what it has planned: then it returns a sentence and what became of each row."""

    plan: Callable[[Caller, Any], Awaitable[Plan]]
    act: Callable[[Caller, Any, Plan], Awaitable[tuple[str, list[Json]]]]


async def _found(caller: Caller, sent: wanted.CancelTimers | wanted.ReplayTimers, verb: str, *, pending: bool) -> Plan:
    """The timers that are pending, or have finished, of those that are named."""
    caller.permit_writing(sent.namespace)
    rows: list[Json] = []
    untouched: list[Json] = []
    for timer_id in dict.fromkeys(sent.ids):
        timer = await caller.find("/timers/get", {"namespace": sent.namespace, "id": timer_id})
        if timer is None:
            untouched.append({"id": timer_id, "why": "there is no such timer"})
        elif (timer["status"] == "pending") is not pending:
            untouched.append({"id": timer_id, "why": f"its status is {timer['status']}"})
        else:
            names = ("id", "status", "executeAt", "callbackUrl", "description", "tags", "createdAt")
            rows.append(row({name: timer[name] for name in names if name in timer}))
    return Plan(f"{_timers(len(rows))} of namespace {sent.namespace} would be {verb}.", rows, untouched)


def _timers(count: int) -> str:
    return "1 timer" if count == 1 else f"{count} timers"


async def _plan_cancel(caller: Caller, sent: wanted.CancelTimers) -> Plan:
    return await _found(caller, sent, "canceled, and never call", pending=True)


async def _cancel(caller: Caller, sent: wanted.CancelTimers, plan: Plan) -> tuple[str, list[Json]]:
    done: list[str] = []
    results: list[Json] = []
    action = AuditAction.TIMERS_CANCELED
    try:
        for timer_id in (str(each["id"]) for each in plan.rows):
            name = {"namespace": sent.namespace, "id": timer_id}
            try:
                await caller.change("/timers/delete", name, action, sent.namespace, timers=[timer_id])
            except ApiRefused as refused:
                results.append({"id": timer_id, "error": refused.problem.get("error"), "message": str(refused)})
            else:
                done.append(timer_id)
                results.append({"id": timer_id, "canceled": True})
    finally:
        if done:
            await caller.wrote(action, sent.namespace, timers=done)
    return f"{_timers(len(done))} of {len(plan.rows)} canceled.", results


async def _plan_replay(caller: Caller, sent: wanted.ReplayTimers) -> Plan:
    when = "at once" if sent.execute_at is UNSET and sent.delay is UNSET else "at the instant asked for"
    return await _found(caller, sent, f"made pending again, and call {when}", pending=False)


async def _replay(caller: Caller, sent: wanted.ReplayTimers, plan: Plan) -> tuple[str, list[Json]]:
    ids = [str(each["id"]) for each in plan.rows]
    action = AuditAction.TIMERS_REPLAYED
    wanted_now = structs.replace(sent, ids=ids)
    answer = await caller.change("/timers/replay", wanted_now, action, sent.namespace, timers=ids)
    done: list[str] = []
    results: list[Json] = []
    for timer_id, result in zip(ids, answer["results"], strict=True):
        if (error := result.get("error")) is not None:
            results.append({"id": timer_id, "error": error["error"], "message": error["message"]})
        else:
            done.append(timer_id)
            results.append({"id": timer_id, "executeAt": result["timer"]["executeAt"]})
    if done:
        await caller.wrote(action, sent.namespace, timers=done)
    return f"{_timers(len(done))} of {len(ids)} pending again.", results


async def _plan_schedule(caller: Caller, sent: wanted.CreateSchedule) -> Plan:
    caller.permit_writing(sent.namespace)
    timing = {name: getattr(sent, name) for name in wanted.Timing.__struct_fields__}
    preview = await caller.ask("/schedules/preview", wanted.PreviewSchedule(**timing, count=INSTANTS_SHOWN))
    former = await caller.find("/schedules/get", {"namespace": sent.namespace, "scheduleId": sent.id})
    replaces = former is not None and former["status"] != "ended"
    planned: Json = {"id": sent.id, "calls": sent.callback_url, "runs": preview["sentence"]}
    if replaces:
        planned["replaces"] = _definition(former)
    sentence = (
        f"The schedule {'with this id would be replaced' if replaces else 'would be created'}: {preview['sentence']}."
    )
    # The instants are no part of the row: those of an interval depend on when it is created.
    return Plan(f"{sentence} Next instants: {', '.join(preview['instants'])}.", [planned])


async def _create_schedule(caller: Caller, sent: wanted.CreateSchedule, _: Plan) -> tuple[str, list[Json]]:
    action = AuditAction.SCHEDULE_CREATED
    created = await caller.change("/schedules/create", sent, action, sent.namespace, schedule=sent.id)
    await caller.wrote(action, sent.namespace, schedule=sent.id)
    return f"The schedule was created; its next instants: {', '.join(created['nextInstants'])}.", [row(created)]


async def _plan_delete(caller: Caller, sent: wanted.NamedSchedule) -> Plan:
    caller.permit_writing(sent.namespace)
    schedule = await caller.find("/schedules/get", sent)
    if schedule is None or schedule["status"] == "ended":
        why = "there is no such schedule" if schedule is None else "it has ended"
        return Plan("Nothing would be deleted.", [], [{"id": sent.schedule_id, "why": why}])
    return Plan(
        f"The schedule would be deleted, and not fire again. It runs: {schedule['sentence']}.", [_definition(schedule)]
    )


def _definition(schedule: Json) -> Json:
    """What is shown of a schedule that would be replaced or deleted: nothing that changes because it fires."""
    names = (
        "id", "status", "sentence", "callbackUrl", "description", "tags", "managedBy", "version", "createdAt", "updatedAt"
    )  # fmt: skip
    return row({name: schedule[name] for name in names if name in schedule})


async def _delete(caller: Caller, sent: wanted.NamedSchedule, _: Plan) -> tuple[str, list[Json]]:
    action = AuditAction.SCHEDULE_DELETED
    await caller.change("/schedules/delete", sent, action, sent.namespace, schedule=sent.schedule_id)
    await caller.wrote(action, sent.namespace, schedule=sent.schedule_id)
    return "The schedule was deleted.", [{"id": sent.schedule_id, "deleted": True}]


TWO_STEPS: dict[TwoStepTool, TwoSteps] = {
    TwoStepTool.CANCEL_TIMERS: TwoSteps(_plan_cancel, _cancel),
    TwoStepTool.REPLAY_TIMERS: TwoSteps(_plan_replay, _replay),
    TwoStepTool.CREATE_SCHEDULE: TwoSteps(_plan_schedule, _create_schedule),
    TwoStepTool.DELETE_SCHEDULE: TwoSteps(_plan_delete, _delete),
}

"""`tocsin timers watch`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.failure import Refused, WrongUsage
from tocsin.cli.options import LOCAL_SERVER, AsJson, Namespace, Server, duration_us

if TYPE_CHECKING:
    from tocsin.cli.client import Client

PAGE_ROWS = 1_000


def watch(
    timer_ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of the timers.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="Instead of ids: all timers with this tag; may be repeated.")
    ] = None,
    namespace: Namespace = "default",
    interval: Annotated[str, typer.Option(metavar="DURATION", help="Polling interval.")] = "500ms",
    server: Server = LOCAL_SERVER,
    as_json: AsJson = False,
) -> None:
    """Show each change of state until all timers have finished; exit code 1 if one failed."""
    if bool(timer_ids) == bool(tag):
        raise WrongUsage("give either ids or --tag")
    pause_s = max(0.05, duration_us("--interval", interval) / 1e6)
    shown: dict[str, tuple[Any, ...]] = {}
    failed: set[str] = set()
    with server.client() as client:
        while True:
            pending = False
            timers = _by_id(client, namespace, timer_ids, shown) if timer_ids else _by_tag(client, namespace, tag or [])
            for timer in timers:
                state = (timer["status"], timer.get("attempts"), timer.get("executeAt"), timer.get("lastError"))
                if shown.get(timer["id"]) != state:
                    shown[timer["id"]] = state
                    _print_state(timer, as_json)
                pending |= timer["status"] == "pending"
                (failed.add if timer["status"] in ("failed", "expired") else failed.discard)(timer["id"])
            if not pending:
                break
            time.sleep(pause_s)
    if not shown:
        raise Refused(f"no timer in namespace {namespace} has the tag {' and '.join(tag or [])}")
    if failed:
        raise Refused(f"failed: {', '.join(sorted(failed))}")


def _by_id(
    client: Client, namespace: str, timer_ids: list[str], shown: dict[str, tuple[Any, ...]]
) -> Iterator[dict[str, Any]]:
    from tocsin.cli.client import ServerRefused

    for timer_id in timer_ids:
        try:
            yield client.post("/timers/get", {"namespace": namespace, "timerId": timer_id})
        except ServerRefused as refusal:
            if refusal.code != "TIMER_NOT_FOUND" or timer_id not in shown:
                raise
            # The timer finished, and its namespace keeps no history of such timers.
            yield {"id": timer_id, "status": "gone"}


def _by_tag(client: Client, namespace: str, tags: list[str]) -> Iterator[dict[str, Any]]:
    for page in client.pages("/timers/list", {"namespace": namespace, "tags": tags, "limit": PAGE_ROWS}):
        yield from page["timers"]


def _print_state(timer: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.print_json(timer)
        return
    parts = [(time.strftime("%H:%M:%S  ") + timer["id"] + "  ", "")]
    parts.append((timer["status"], output.STATUS_STYLES.get(timer["status"], "")))
    if timer["status"] == "pending":
        parts.append((f"  due {output.relative(timer.get('nextAttemptAt') or timer['executeAt'])}", ""))
    if timer.get("attempts"):
        parts.append((f"  attempts {timer['attempts']}", ""))
    if timer.get("lastError"):
        parts.append((f"  {timer['lastError']}", "red"))
    output.print_line(parts)

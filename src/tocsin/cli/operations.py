"""What operators ask of a running server: `tocsin cluster`, `statistics`, `metrics` and `audit`, and `tocsin clock` of
`tocsin dev`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.command import Refused, WrongUsage, command, group
from tocsin.cli.options import AsJson, ServerOptions, checked_duration, checked_instant, given

if TYPE_CHECKING:
    from tocsin.cli.client import Client


def cluster(*, server: ServerOptions, as_json: AsJson = False) -> None:
    """Show the nodes and shards: owners, timers in the window, lag."""
    with server.client() as client:
        answer = client.get("/cluster")
    if as_json:
        output.print_json(answer)
        return
    nodes, shards = answer["nodes"], answer["shards"]
    output.print_table(
        ("node", "address", "state", "version", "shards", "window", "lag ms", "agent"),
        [
            (
                node["node"],
                node.get("address"),
                _state(node),
                *(_known(node.get(name)) for name in ("version", "shards", "windowTimers", "lagMs", "agent")),
            )
            for node in nodes
        ],
    )
    if sizes := [node["largestShardBytes"] for node in nodes if node.get("largestShardBytes") is not None]:
        output.note(f"Largest shard: {max(sizes) / 2**20:,.0f} MiB")
    columns = list(dict.fromkeys(name for shard in shards for name in shard))
    output.print_table(columns, [[output.cell(shard.get(name)) for name in columns] for shard in shards])
    for name, number in Counter(node["node"] for node in nodes if node.get("sharesName")).items():
        output.note(
            f"Warning: {number} live nodes have the name {name}. Only one of them gets shards: "
            "set a unique node_name for each and restart it."
        )
    for name in [node["node"] for node in nodes if node.get("secretDiffers")]:
        output.note(
            f"Warning: {name} has another cluster.secret than nodes that started earlier, so it owns no shards: set "
            "theirs, or name the former one in cluster.secret_former while you replace it."
        )
    for node in nodes:
        if node.get("dispatching") is False:
            output.note(f"{node['node']} fires no timers: {_pause_text(node.get('pausedReason') or 'unknown')}")


def _pause_text(reason: str) -> str:
    """Why a node fires nothing, in words and as its code."""
    from tocsin.timers.explaining import PAUSE_TEXTS

    return f"{words} ({reason})" if (words := PAUSE_TEXTS.get(reason)) else reason


def _state(node: dict[str, object]) -> str:
    if not node.get("alive"):
        return "dead"
    if node.get("leaving"):
        return "leaving"
    if node.get("secretDiffers"):
        return "secret differs"
    if node.get("skewed"):
        return "clock off"
    return "paused" if node.get("dispatching") is False else "alive"


def _known(value: object) -> object:
    """The value, or `unknown` for what only an unreachable node knows."""
    return "unknown" if value is None else output.cell(value)


#: What the text format appends to a metric's name for its series.
_SUFFIXES = ("", "_total", "_bucket", "_sum", "_count")


def metrics(
    *,
    prefix: Annotated[
        list[str] | None,
        typer.Argument(metavar="PREFIX", help="Only metrics whose name has one of these prefixes.", show_default="all"),
    ] = None,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Show a node's metrics, without their descriptions, one series on each line. A comment names those that have counted
    nothing yet; a name that the node does not have is an error."""
    with server.client() as client:
        text = read_metrics(client)
    lines, empty, unknown = selected(text, prefix or [""])
    if as_json:
        output.print_json(_samples(lines))
    else:
        notes = [f"# {name} has no series yet: nothing was counted since the node started" for name in empty]
        for line in lines + notes:
            typer.echo(line)
    if unknown:
        raise Refused(
            f"{server.server} has no metric whose name begins with {', '.join(unknown)}; docs/reference/metrics.md lists them"
        )


def read_metrics(client: Client) -> str:
    """A node's metrics in the text format. Raises Refused, which names the key that is needed, and Unreachable."""
    from tocsin.cli.client import ServerRefused

    try:
        return client.text("/metrics")
    except ServerRefused as error:
        if error.status in (401, 403):
            raise Refused(
                f"{error}\nMetrics need a key that is not limited to namespaces or tenants; role read is enough: "
                "tocsin keys create --role read"
            ) from None
        raise


def selected(text: str, prefixes: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """The lines of series whose names have one of the prefixes, the metrics that have no series yet, and the prefixes that
    no metric has."""
    lines = text.splitlines()
    metrics = [line.split(" ")[2] for line in lines if line.startswith("# TYPE ")]
    samples = [line for line in lines if line and not line.startswith("#")]
    empty, unknown = [], []
    for prefix in prefixes:
        if any(line.startswith(prefix) for line in samples):
            continue
        named = [name for name in metrics if any(f"{name}{suffix}".startswith(prefix) for suffix in _SUFFIXES)]
        if named:
            empty.append(prefix)
        else:
            unknown.append(prefix)
    return [line for line in samples if line.startswith(tuple(prefixes))], empty, unknown


def _samples(lines: Sequence[str]) -> list[dict[str, Any]]:
    from prometheus_client.parser import text_string_to_metric_families

    return [
        {"name": sample.name, "labels": sample.labels, "value": sample.value}
        for family in text_string_to_metric_families("\n".join(lines) + "\n")
        for sample in family.samples
    ]


#: Entries per page.
PAGE_ENTRIES = 100


def audit(
    *,
    action: Annotated[
        list[str] | None,
        typer.Option(help="Only this action, such as key_created; may be repeated.", show_default="all"),
    ] = None,
    key_id: Annotated[str | None, typer.Option("--by", metavar="KEY", help="Only actions of this key.")] = None,
    subject: Annotated[str | None, typer.Option(metavar="NAME", help="Only actions on this namespace or key.")] = None,
    after: Annotated[str | None, typer.Option(metavar="INSTANT", help="Only entries at or after this instant.")] = None,
    before: Annotated[str | None, typer.Option(metavar="INSTANT", help="Only entries before this instant.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries.")] = 100,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Show the audit trail, newest first: sign-ins, and changes of keys, namespaces and more. Requires an admin key."""
    filters = {"action": action, "keyId": key_id, "subject": subject, "after": after, "before": before}
    wanted: dict[str, Any] = {name: value for name, value in filters.items() if value}
    with server.client() as client:
        pages = client.pages("/audit/list", {**wanted, "limit": min(PAGE_ENTRIES, limit)})
        entries = list(islice((entry for page in pages for entry in page["entries"]), limit))
    if as_json:
        output.print_json(entries)
        return
    output.print_table(
        ("at", "action", "key", "subject", "from", "address", "node", "details"),
        [
            (
                *(entry[name] for name in ("at", "action", "keyId", "subject", "source", "address", "node")),
                ", ".join(f"{name}={_shown(value)}" for name, value in entry["details"].items()),
            )
            for entry in entries
        ],
    )


def statistics(
    *,
    namespace: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this namespace.", show_default="all that the key may see")
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option("--from", metavar="INSTANT", help="From the slot with this instant.", show_default="1h ago"),
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="INSTANT", help="Only slots before this instant.", show_default="now")
    ] = None,
    ten_minutes: Annotated[
        bool, typer.Option("--ten-minutes", help="Slots of ten minutes, which reach back 30 days; minutes 24 hours.")
    ] = False,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Show what happened, minute by minute: timers created, attempts by outcome, lag, failing destinations, outages."""
    wanted = given(
        namespace=namespace,
        **{"from": checked_instant("--from", begin)},
        to=checked_instant("--to", end),
        resolution="tenMinutes" if ten_minutes else None,
    )
    with server.client() as client:
        answer = client.post("/statistics/get", wanted)
    if as_json:
        output.print_json(answer)
        return
    counted = ("created", "attempts", "retried", "failed", "expired", "late")
    output.print_table(
        ("at", *counted, "lag p50 ms", "lag p99 ms", "max ms"),
        [
            (slot["at"], *(slot[name] for name in counted), *map(_rounded, (slot[name] for name in _LAGS)))
            for slot in answer["slots"]
        ],
    )
    if answer["failing"]:
        output.print_table(
            ("failing", "namespace", "failures", "exhausted", "last error"),
            [
                (f"{each['destination']}{each['path']}", *(each[name] for name in _FAILING))
                for each in answer["failing"]
            ],
        )
    for outage in answer["outages"]:
        late = (
            "" if outage["late"] is None else f", {outage['late']} late by at most {_rounded(outage['lateMaxMs'])} ms"
        )
        output.note(
            f"{outage['node']} fired nothing from {outage['from']} to {outage.get('to', 'now')} ({outage['reason']}){late}"
        )


_LAGS = ("lagP50Ms", "lagP99Ms", "lagMaxMs")
_FAILING = ("namespace", "failures", "exhausted", "lastError")


def _rounded(value: float | None) -> object:
    return output.cell(None if value is None else round(value, 1))


def _shown(value: object) -> str:
    return "+".join(map(str, value)) or "all" if isinstance(value, list) else str(value)


clock = group("Show and move the clock of a server that `tocsin dev` runs.", example="clock advance 3d")


@command(clock, "get", example="clock get")
def get(*, server: ServerOptions, as_json: AsJson = False) -> None:
    """Show the clock."""
    _show(_post(server, "get", {}), as_json)


@command(clock, "advance", example="clock advance 3d")
def advance(
    *,
    by: Annotated[str | None, typer.Argument(metavar="[DURATION]", help="How far: 500ms, 30s, 5m, 24h, 7d.")] = None,
    to: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="To this instant instead, such as 2027-01-31T12:00:00Z.")
    ] = None,
    jump: Annotated[
        bool, typer.Option("--jump", help="Go there at once, so that what is due on the way is late.")
    ] = False,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Move the clock forward. It halts at each instant at which something is due, until the answers are durable."""
    if (by is None) == (to is None):
        raise WrongUsage("give exactly one of a duration, such as 3d, and --to, such as --to 2027-01-31T12:00:00Z")
    mode = "jump" if jump else None
    request = given(by=checked_duration("DURATION", by), to=checked_instant("--to", to), mode=mode)
    _show(_post(server, "advance", request), as_json)


def _post(server: ServerOptions, action: str, body: dict[str, Any]) -> dict[str, Any]:
    from tocsin.cli.client import Client, ServerRefused

    # Thousands of timers may fire before the response: the server limits how long it waits for each.
    with Client(server.server, server.key, answer_timeout_s=None) as client:
        # A duration that is sent twice may move the clock twice.
        post = client.post_once if "by" in body else client.post
        try:
            moved: dict[str, Any] = post(f"/dev/clock/{action}", body)
        except ServerRefused as refusal:
            if refusal.status != 404:
                raise
            raise Refused(f"{client.server} has no clock that can be moved; start one with `tocsin dev`") from refusal
    return moved


def _show(answer: dict[str, Any], as_json: bool) -> None:
    output.print_result(answer if as_json else answer | {"offset": _rough(answer["offset"])}, as_json)


def _rough(offset: str) -> str:
    """The duration in whole seconds."""
    from tocsin.model.instants import US_PER_SECOND, format_duration, parse_duration

    return format_duration(parse_duration(offset) // US_PER_SECOND * US_PER_SECOND)

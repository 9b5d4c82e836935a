"""`tocsin flows`: the rules that limit how many attempts begin, and are in flight at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.command import command, group
from tocsin.cli.options import AsJson, BatchOptions, ServerOptions, checked_instant, flow_limits, given

app = group(
    "Flows: rules that limit how many attempts begin, and are in flight at once, of timers with the same --flow-key.",
    example="flows put customer: --per-key-rate 100/1m --per-key-parallelism 2",
)

Namespace = Annotated[str, typer.Option("--namespace", "-n", metavar="NAME", help="The rules' namespace.")]
Match = Annotated[
    str, typer.Argument(metavar="MATCH", help="A flow key, or a prefix of keys, which ends with a colon.")
]


@dataclass(frozen=True)
class RuleOptions:
    """The limits of a rule: of each key by itself, and of all its keys together."""

    per_key_rate: Annotated[
        str | None, typer.Option(metavar="N/DURATION", help="Attempts of one key, such as 100/1m.")
    ] = None
    per_key_burst: Annotated[
        int | None, typer.Option(metavar="N", help="Attempts of one key that may begin at once.", show_default="1")
    ] = None
    per_key_parallelism: Annotated[
        int | None, typer.Option(metavar="N", help="Attempts of one key in flight at once.")
    ] = None
    ordered: Annotated[
        bool,
        typer.Option(
            "--ordered",
            help="The timers of one key begin one at a time, in the order of their instants, each when the one before has "
            "ended. Requires a namespace with one shard.",
        ),
    ] = False
    total_rate: Annotated[str | None, typer.Option(metavar="N/DURATION", help="Attempts of all keys together.")] = None
    total_burst: Annotated[
        int | None, typer.Option(metavar="N", help="Attempts of all keys that may begin at once.", show_default="1")
    ] = None
    total_parallelism: Annotated[
        int | None, typer.Option(metavar="N", help="Attempts of all keys in flight at once.")
    ] = None
    close_on_retry_after: Annotated[
        bool,
        typer.Option(
            "--close-on-retry-after",
            help="An answer 429 or 503 with Retry-After lets nothing more of its key begin until then.",
        ),
    ] = False

    def fields(self) -> dict[str, Any]:
        """The fields of the request."""
        return given(
            perKey=flow_limits(
                "--per-key-rate",
                self.per_key_rate,
                burst=self.per_key_burst,
                parallelism=self.per_key_parallelism,
                ordered=self.ordered,
            ),
            total=flow_limits(
                "--total-rate", self.total_rate, burst=self.total_burst, parallelism=self.total_parallelism
            ),
            closeOnRetryAfter=self.close_on_retry_after or None,
        )


@command(app, "put", example="flows put customer: --per-key-rate 100/1m --per-key-burst 10 --per-key-parallelism 2")
def put(
    *,
    match: Match,
    rule: RuleOptions,
    batch: BatchOptions,
    namespace: Namespace = "default",
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Create a rule, or replace all its limits. One that is paused stays so."""
    _show(
        server.post("/flows/put", {"namespace": namespace, "match": match, **rule.fields(), **batch.field()}), as_json
    )


@command(app, "get", example="flows get customer:")
def get(*, match: Match, namespace: Namespace = "default", server: ServerOptions, as_json: AsJson = False) -> None:
    """Show a rule, and how many attempts are in flight and wait."""
    _show(server.post("/flows/get", {"namespace": namespace, "match": match}), as_json)


@command(app, "list", example="flows list --namespace billing")
def list_flows(
    *,
    namespace: Namespace = "default",
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Maximum number of rules.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="nextCursor of the previous page.")] = None,
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """List the rules of a namespace by what they match."""
    answer = server.post("/flows/list", given(namespace=namespace, limit=limit, cursor=cursor))
    columns = ("match", "perKey", "total", "closeOnRetryAfter", "paused", "inFlight", "waiting")
    output.print_objects(answer, as_json, "flows", columns, map(_shown, answer["flows"]))
    if not as_json and not all(each["complete"] for each in answer["flows"]):
        output.note("Not all nodes have answered: more may be in flight and wait")


@command(app, "pause", example="flows pause customer:17 --until 2027-01-31T12:00:00Z")
def pause(
    *,
    match: Match,
    until: Annotated[
        str | None, typer.Option(metavar="INSTANT", help="When it goes on.", show_default="when it is resumed")
    ] = None,
    namespace: Namespace = "default",
    server: ServerOptions,
    as_json: AsJson = False,
) -> None:
    """Let nothing of a rule's keys begin. In-flight attempts go on."""
    wanted = {"namespace": namespace, "match": match, **given(until=checked_instant("--until", until))}
    _show(server.post("/flows/pause", wanted), as_json)


@command(app, "resume", example="flows resume customer:17")
def resume(*, match: Match, namespace: Namespace = "default", server: ServerOptions, as_json: AsJson = False) -> None:
    """End a pause."""
    _show(server.post("/flows/resume", {"namespace": namespace, "match": match}), as_json)


@command(app, "delete", example="flows delete customer:17")
def delete(*, match: Match, namespace: Namespace = "default", server: ServerOptions) -> None:
    """Delete a rule. Its keys are subject to the rule with the next longest prefix then, or not limited."""
    server.post("/flows/delete", {"namespace": namespace, "match": match})
    output.note(f"{match} is deleted.")


def _show(flow: dict[str, Any], as_json: bool) -> None:
    if as_json:
        output.print_json(flow)
    else:
        output.print_fields({name: output.cell(value) for name, value in _shown(flow).items()})


def _shown(flow: dict[str, Any]) -> dict[str, Any]:
    """The rule, its limits in words."""
    return {name: _words(value) if name in ("perKey", "total") else value for name, value in flow.items()}


def _words(limits: dict[str, Any]) -> str:
    parts = [f"{limits['rate']['count']}/{limits['rate']['per']}"] if "rate" in limits else []
    parts += [f"{name} {limits[name]}" for name in ("burst", "parallelism") if name in limits]
    return ", ".join([*parts, "ordered"] if limits.get("ordered") else parts)

"""`tocsin metrics`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli import output
from tocsin.cli.failure import Refused
from tocsin.cli.options import LOCAL_SERVER, AsJson, Server

if TYPE_CHECKING:
    from tocsin.cli.client import Client

#: What the text format appends to a metric's name for its series.
_SUFFIXES = ("", "_total", "_bucket", "_sum", "_count")


def metrics(
    prefix: Annotated[
        list[str] | None,
        typer.Argument(metavar="PREFIX", help="Only metrics whose name has one of these prefixes.", show_default="all"),
    ] = None,
    server: Server = LOCAL_SERVER,
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

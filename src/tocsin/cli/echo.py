"""`tocsin echo`: a callback receiver that prints what it receives, and can be slow, fail or reschedule on request."""

from __future__ import annotations

from typing import Annotated

import typer

from tocsin.cli.options import AsJson, duration_us

FAILING_STATUS = 500


def echo(
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 takes a free one.")] = 9_000,
    delay: Annotated[str, typer.Option(metavar="DURATION", help="Delay of each response.")] = "0s",
    fail_rate: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, metavar="SHARE", help="Share of callbacks that fail, with --status or 500."),
    ] = None,
    status: Annotated[
        int | None, typer.Option(min=200, max=599, help="Status of the response; with --fail-rate, of failures.")
    ] = None,
    reschedule: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Reschedule each timer by this much.")
    ] = None,
    times: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="With --reschedule: the number of times for each timer.")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print one line per second with the rate instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Receive callbacks and print each with its time, attempt, lag (of first attempts) and payload. Stop with Ctrl-C."""
    from tocsin.cli.echo_listener import Behaviour, listen

    behaviour = Behaviour(
        delay_s=duration_us("--delay", delay) / 1e6,
        fail_rate=fail_rate,
        status=status or (FAILING_STATUS if fail_rate is not None else 200),
        reschedule_us=None if reschedule is None else duration_us("--reschedule", reschedule),
        times=times,
    )
    listen(host, port, behaviour, quiet=quiet, as_json=as_json)

"""`tocsin demo`: a server, a receiver and a few timers or service calls in one terminal."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from tocsin.cli import output


def demo(
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the data.", show_default="a temporary folder")
    ] = None,
    agent: Annotated[bool, typer.Option("--agent", help="Show service calls instead of timers.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines instead of a live table.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep serving at the end, until Ctrl-C.")] = False,
) -> None:
    """Watch timers fire: one immediately, one soon, one retried, one rescheduled, one canceled.

    With --agent: service calls, one now, one later, one to a dead host, one that gets a 503, one deleted, one sent twice.
    """
    import asyncio
    import tempfile

    from tocsin.cli.demo_calls import CallsDemo
    from tocsin.cli.demo_timers import TimersDemo

    with contextlib.ExitStack() as stack:
        folder = data_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tocsin-demo-")))
        plain = plain or not output.console().is_terminal
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run((CallsDemo() if agent else TimersDemo()).play(folder, plain=plain, keep=keep))

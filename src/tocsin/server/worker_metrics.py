"""The metrics of all workers behind one port: a scrape reaches any one of them, which asks the others.

Each worker answers at a Unix socket in the folder of its parent, which only the same user may enter.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path

import structlog

#: Seconds in which another worker must answer. One that starts, ends or is blocked is missing from the scrape.
_ANSWER_S = 1.0
#: The label that distinguishes the workers.
LABEL = "worker"

#: Returns the body and content type of one process's scrape.
Exposition = Callable[[], tuple[bytes, str]]


class WorkerMetrics:
    """The metrics of worker `number` of `count`, and on request those of all."""

    def __init__(self, number: int, count: int, folder: Path, own: Exposition) -> None:
        self._number = number
        self._count = count
        self._folder = folder
        self._own = own
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begins to answer the other workers. Raises OSError."""
        path = self._path(self._number)
        # That of the former process in this slot, which may have been killed.
        path.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._answer, path)

    async def close(self) -> None:
        """Ends the answering."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def scrape(self) -> tuple[bytes, str]:
        """The metrics of all workers that answer, each series with its worker's number as a label."""
        others = [number for number in range(self._count) if number != self._number]
        answers = await asyncio.gather(*map(self._ask, others))
        body, content_type = self._own()
        found = {number: answer for number, answer in zip(others, answers, strict=True) if answer is not None}
        return merged({**found, self._number: body}), content_type

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.metrics"

    async def _answer(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A worker that stopped waiting has closed its end.
        with contextlib.suppress(ConnectionError):
            writer.write(self._own()[0])
            await writer.drain()
        writer.close()

    async def _ask(self, number: int) -> bytes | None:
        try:
            async with asyncio.timeout(_ANSWER_S):
                reader, writer = await asyncio.open_unix_connection(self._path(number))
                try:
                    return await reader.read()
                finally:
                    writer.close()
        except OSError as error:
            structlog.get_logger("tocsin.workers").warning(
                "worker's metrics missing", worker=number, error=str(error) or type(error).__name__
            )
            return None


def merged(scrapes: Mapping[int, bytes]) -> bytes:
    """One scrape out of those of several workers: each metric's comments once, then its samples by worker."""
    families: dict[str, list[str]] = {}
    for number, body in sorted(scrapes.items()):
        family: list[str] = []
        for line in body.decode().splitlines():
            if line.startswith("#"):
                _, comment, name, _ = line.split(" ", 3)
                family = families.setdefault(name, [])
                if not any(known.startswith(f"# {comment} ") for known in family):
                    family.append(line)
            else:
                family.append(_labelled(line, number))
    return "".join(f"{line}\n" for family in families.values() for line in family).encode()


def _labelled(sample: str, number: int) -> str:
    # A name has neither braces nor spaces.
    name, brace, rest = sample.partition("{")
    if brace and " " not in name:
        return f'{name}{{{LABEL}="{number}",{rest}'
    name, _, value = sample.partition(" ")
    return f'{name}{{{LABEL}="{number}"}} {value}'

"""Runs `tocsin` as a user does: as a process of its own."""

from __future__ import annotations

import asyncio
import os

from tests.support import preloaded
from tests.support.patience import PATIENCE_S


async def command(
    *arguments: str, env: dict[str, str] | None = None, timeout_s: float = PATIENCE_S
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error; settings of this process's environment don't count."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
    process = await preloaded.start(arguments, {**clean, **(env or {})})
    try:
        async with asyncio.timeout(timeout_s):
            out, err = await process.communicate()
    except TimeoutError:
        process.kill()
        raise
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()

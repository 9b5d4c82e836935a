"""The lock of a PostgreSQL database: one agent at a time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from tocsin.agent.adapters.sql.errors import DATABASE_ERRORS, postgresql_meaning
from tocsin.agent.adapters.sql.settings import SqlSettings
from tocsin.model.errors import StoreLocked, StoreUnavailable

#: "Tocsin", as a number. Advisory locks are of one database; other databases of the server are free.
LOCK_KEY = 0x546F6373696E
_POLL_S = 0.1

_HOLDER = """
SELECT a.pid, coalesce(host(a.client_addr), 'local'), a.application_name
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid JOIN pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND l.granted AND d.datname = current_database() AND l.objsubid = 1
AND (l.classid::bigint << 32) + l.objid::bigint = $1
"""


class AdvisoryLock:
    """An advisory lock of the session of a connection that does nothing else.

    The server drops it with that session: when the process dies, and also when the server restarts or the network
    between breaks. In the last two cases this agent goes on, and takes the lock again as soon as it can. In between
    `check` refuses, so that nothing new is begun; but a transaction that was under way may still commit, and from the
    session's end until it is noticed here (at most `lock_check_s`) new ones may begin. Another agent that took the lock
    within that time then works beside this one for as long. Guarded updates and row locks keep every state legal; what
    can happen is that both publish a message or make a request: at least once, not at most once.
    """

    def __init__(self, connect: dict[str, Any], name: str, settings: SqlSettings) -> None:
        self._connect_args = connect
        self._name = name
        self._settings = settings
        self._connection: Any = None
        self._lost = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None
        self._trouble = ""

    async def acquire(self) -> None:
        """Takes the lock, waiting a little for another to give it up. Raises StoreLocked, StoreUnavailable."""
        deadline = time.monotonic() + self._settings.lock_wait_s
        while True:
            try:
                await self._take()
                break
            except StoreLocked:
                if time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(_POLL_S)
        self._watch = asyncio.create_task(self._keep(), name="agent-database-lock")

    def check(self) -> None:
        """Raises StoreUnavailable while the lock isn't held."""
        if self._connection is None or self._connection.is_closed():
            raise StoreUnavailable(f"{self._name}: the agent's lock was lost and is being taken again {self._trouble}")

    async def release(self) -> None:
        """Gives it up. Idempotent."""
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
            self._watch = None
        await self._drop()

    async def _take(self) -> None:
        try:
            connection = await asyncpg.connect(**self._connect_args)
        except DATABASE_ERRORS as error:
            raise postgresql_meaning(error, self._name) from error
        try:
            if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", LOCK_KEY):
                raise StoreLocked(
                    f"{self._name} is in use by another agent ({await self._holder(connection)}); stop that one or choose "
                    f"another database"
                )
        except BaseException as error:
            connection.terminate()
            if isinstance(error, DATABASE_ERRORS):
                raise postgresql_meaning(error, self._name) from error
            raise
        self._lost.clear()
        connection.add_termination_listener(lambda _: self._lost.set())
        self._connection, self._trouble = connection, ""

    @staticmethod
    async def _holder(connection: Any) -> str:
        holder = await connection.fetchrow(_HOLDER, LOCK_KEY)
        return "which just ended" if holder is None else f"{holder[2]} at {holder[1]}, server process {holder[0]}"

    async def _keep(self) -> None:
        """Sees that it is held, and takes it again when it isn't."""
        while True:
            if await self._is_held():
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._lost.wait(), self._settings.lock_check_s)
                continue
            await self._drop()
            try:
                await self._take()
            except (StoreLocked, StoreUnavailable) as error:
                self._trouble = f"({error})"
                await asyncio.sleep(self._settings.lock_retry_s)

    async def _is_held(self) -> bool:
        if self._connection is None or self._connection.is_closed():
            return False
        try:
            await self._connection.execute("SELECT 1", timeout=self._settings.connect_timeout_s)
        except DATABASE_ERRORS:
            return False
        return True

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()

"""The checks of `tocsin doctor` on what the service agent needs: its database and its broker."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

from tocsin.model.errors import ConfigError, TocsinError
from tocsin.ports.bus import BrokerRefused, BusUnavailable
from tocsin.server.findings import STORE_TIMEOUT_S, Finding, Verdict
from tocsin.settings import Settings


async def check_agent(settings: Settings) -> AsyncIterator[Finding]:
    """The agent's database can be reached and written, and the broker takes its messages. Nothing where it never runs."""
    if not settings.has_agent():
        return
    url = settings.agent_database_url()
    if url.startswith("postgresql"):
        yield await _postgresql(settings, url)
    elif path := url.removeprefix("sqlite:///"):
        yield _file(Path(path))
    if settings.broker is not None:
        yield await _broker(settings, settings.broker)


def _file(path: Path) -> Finding:
    if not path.exists():
        return Finding("agent", Verdict.OK, f"there is no {path} yet; `tocsin serve` creates it")
    if not all(os.access(each, os.W_OK) for each in (path, path.parent)):
        return Finding("agent", Verdict.FAIL, f"{path} can't be written", "give file and folder to the server's user")
    return Finding("agent", Verdict.OK, f"{path} can be written")


async def _postgresql(settings: Settings, url: str) -> Finding:
    from tocsin.stores.service_calls.postgresql import missing_rights

    mend = "check agent.database, its address, user and password"
    try:
        async with asyncio.timeout(STORE_TIMEOUT_S):
            place, tables = await missing_rights(url, settings.agent_sql)
    except (TocsinError, OSError, TimeoutError) as error:
        text = str(error) or f"its database did not answer within {STORE_TIMEOUT_S:.0f} s"
        return Finding("agent", Verdict.FAIL, text, mend)
    if tables is None:
        return Finding("agent", Verdict.OK, f"{place} has no tables yet; `tocsin serve` creates them")
    if tables:
        grant = "grant SELECT, INSERT, UPDATE and DELETE on them to its user"
        return Finding("agent", Verdict.FAIL, f"{place}: rights on {', '.join(tables)} are missing", grant)
    return Finding("agent", Verdict.OK, f"{place} can be read and written")


async def _broker(settings: Settings, url: str) -> Finding:
    from tocsin.messaging.nats.connection import JetStreamError, NatsConnection, parse_nats_address

    address = parse_nats_address(url)
    connection = NatsConnection(address, settings.bus, "tocsin doctor", lambda reason: None)
    try:
        await connection.open()
        try:
            await connection.call("INFO", {})
        finally:
            await connection.close()
    except (BusUnavailable, BrokerRefused, ConfigError, JetStreamError) as error:
        return Finding(
            "broker", Verdict.FAIL, str(error), "check broker, its user and password, and that JetStream is on"
        )
    return Finding("broker", Verdict.OK, f"NATS with JetStream at {address}")

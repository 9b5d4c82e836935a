"""Whether the other nodes of a store are alive, and accept this machine's settings, seen from outside the cluster."""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import NamedTuple

from tocsin.cluster.handshake import GREETING, HELLO_BYTES, NONCE_BYTES, WELCOME_BYTES, ClusterSecrets, Handshake
from tocsin.model.errors import ConfigError
from tocsin.ports.store import Member, Store
from tocsin.server.peers import tls_of
from tocsin.settings import Settings
from tocsin.timers.engine.membership import Flag, address_of, flags_of, secret_marks_of

#: Heartbeats may be delayed by a busy store; this many intervals pass between the two reads.
_INTERVALS = 2.5
_CONNECT_TIMEOUT_S = 3.0
_SECRET_MEND = (
    "give all nodes the same cluster.secret; to replace it, name the former one in cluster.secret_former meanwhile"
)


class Fault(NamedTuple):
    """What is wrong with a node, as seen from here; `serious` if the two could not work together."""

    text: str
    mend: str
    serious: bool = True


async def alive_members(store: Store, heartbeat_interval_s: float) -> tuple[list[Member], list[Member]]:
    """The members whose heartbeats move, and the others. Waits for some heartbeats if there are members at all."""
    before = {member.incarnation: member.counter for member in await store.members()}
    if not before:
        return [], []
    await asyncio.sleep(_INTERVALS * heartbeat_interval_s)
    after = await store.members()
    alive = [member for member in after if before.get(member.incarnation) != member.counter]
    return alive, [member for member in after if member not in alive]


async def fault_of(settings: Settings, known: ClusterSecrets, member: Member) -> Fault | None:
    """What is wrong with a living member: its clock, its address, TLS, or that it accepts none of the secrets known here."""
    if Flag.SKEWED in flags_of(member):
        return Fault("its clock differs from the store's, so it fires nothing", "synchronize it with NTP")
    address = address_of(member)
    if not address:
        return Fault("it takes no requests of other nodes", "give it an address with advertise", serious=False)
    try:
        async with asyncio.timeout(_CONNECT_TIMEOUT_S):
            return await _greeted(settings, known, member, address)
    except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
        return _unreachable(address, error)


def _unreachable(address: str, error: Exception) -> Fault:
    if isinstance(error, ssl.SSLError):
        return Fault(f"TLS with {address} fails: {error.reason}", "give all nodes certificates of one authority")
    if isinstance(error, asyncio.IncompleteReadError):
        return Fault(
            f"{address} closes the connection: it uses TLS, or these settings do",
            "use the same cluster.tls_… files on all nodes",
        )
    reason = str(error) or "no answer in time"
    return Fault(f"alive, but {address} can't be reached: {reason}", "open its port, or correct its setting advertise")


async def _greeted(settings: Settings, known: ClusterSecrets, member: Member, address: str) -> Fault | None:
    host, _, port = address.rpartition(":")
    try:
        tls = tls_of(settings, lambda event: None)
    except ConfigError as error:
        return Fault(str(error), "correct the files of cluster.tls_…")
    context, name = (None, None) if tls is None else (tls.dialing, tls.name)
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=context, server_hostname=name)
    try:
        hello = await reader.readexactly(HELLO_BYTES)
        if not hello.startswith(GREETING):
            return Fault(f"{address} is no Tocsin", "correct its setting advertise")
        secret = known.known_to(secret_marks_of(member))
        if secret is None:
            return Fault("its cluster.secret is another one", _SECRET_MEND)
        shaking = Handshake(secret, os.urandom(16), os.urandom(NONCE_BYTES))
        proven = shaking.prove(hello, member.incarnation)
        if proven is None:
            return Fault(f"another node answers at {address}", "correct advertise: each node needs its own address")
        proof, welcome, _ = proven
        writer.write(proof)
        try:
            answer = await reader.readexactly(WELCOME_BYTES)
        except asyncio.IncompleteReadError:
            answer = b""
        if answer != welcome:
            return Fault("its cluster.secret is another one", _SECRET_MEND)
        return None
    finally:
        writer.close()

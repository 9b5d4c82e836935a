"""Opens connections: resolves the name, checks every address, connects, performs the TLS handshake."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable

from tocsin.http_client.connection import Connection
from tocsin.http_client.egress import EgressPolicy
from tocsin.http_client.faults import check_descriptors, local_fault
from tocsin.http_client.resolver import Resolver
from tocsin.http_client.target import Origin
from tocsin.model.answer import EGRESS_REFUSED, NoResponse, NotSent, Refused


class Connector:
    """Connects only to permitted addresses, and to exactly the address that was checked.

    Addresses are tried in order of preference. Each but the last gets an equal share of the remaining time, so that one
    dead address does not use up the time that a live one after it needs.
    """

    def __init__(self, resolver: Resolver, egress: EgressPolicy, tls: ssl.SSLContext | None = None) -> None:
        self._resolver = resolver
        self._egress = egress
        self._tls = tls

    async def connect(
        self, origin: Origin, make: Callable[[], Connection], deadline_ns: int
    ) -> Connection | NoResponse | NotSent:
        """A connection to the origin, or the reason for the failure. The caller cancels at the deadline."""
        try:
            addresses = [origin.host] if origin.is_address else await self._resolver.resolve(origin.host)
        except OSError as error:
            text = f"{origin.host}: {error.strerror or error}"
            return local_fault(error) or NoResponse("NAME_NOT_RESOLVED", text)
        refusals = {ip: self._egress.refusal(ip, origin.host, origin.port) for ip in addresses}
        permitted = [ip for ip, refusal in refusals.items() if refusal is None]
        if not permitted:
            return Refused(EGRESS_REFUSED, f"{origin.host} {next(iter(refusals.values()))}", ", ".join(addresses))
        return await self._try_each(origin, permitted, make, deadline_ns)

    async def _try_each(
        self, origin: Origin, addresses: list[str], make: Callable[[], Connection], deadline_ns: int
    ) -> Connection | NoResponse | NotSent:
        failure = NoResponse("CONNECTION_FAILED")
        unsent: NotSent | None = None
        for index, ip in enumerate(addresses):
            share_s = max(0, deadline_ns - time.monotonic_ns()) / 1e9 / (len(addresses) - index)
            try:
                # The last address has all the remaining time: the caller enforces the attempt's deadline.
                async with asyncio.timeout(share_s if index < len(addresses) - 1 else None):
                    return await self._dial(origin, ip, make)
            except ssl.SSLError as error:
                failure = NoResponse("TLS_FAILED", f"{origin.host} ({ip}): {_tls_reason(error)}")
            except TimeoutError:
                failure = NoResponse(
                    "CONNECTION_FAILED", f"{ip} port {origin.port}: no connection within {share_s:.1f} s"
                )
            except OSError as error:
                unsent = unsent or local_fault(error, ip)
                failure = NoResponse("CONNECTION_FAILED", f"{ip} port {origin.port}: {error.strerror or error}")
        # An address that could not be tried might have worked.
        return unsent or failure

    async def _dial(self, origin: Origin, ip: str, make: Callable[[], Connection]) -> Connection:
        loop = asyncio.get_running_loop()
        if origin.scheme == "http":
            _, connection = await loop.create_connection(make, ip, origin.port)
        else:
            name = origin.host.rstrip(".")
            _, connection = await loop.create_connection(
                make, ip, origin.port, ssl=self._tls_context(), server_hostname=name
            )
        return connection

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            # Loading the system's certificate authorities takes milliseconds: once, and only if TLS is used. Without a
            # free descriptor it would silently load none.
            check_descriptors()
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls


def _tls_reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {error.verify_message}"
    return error.reason or str(error)

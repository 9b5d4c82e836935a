"""Opens connections: resolves, checks every address, dials, shakes hands."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable

from tocsin.callbacks.connection import Connection
from tocsin.callbacks.egress import EgressPolicy
from tocsin.callbacks.faults import check_descriptors, local_fault
from tocsin.callbacks.resolver import Resolver
from tocsin.callbacks.target import Origin
from tocsin.model.answer import NoResponse, NotSent


class Connector:
    """Connects to permitted addresses only, and to the very address that was checked.

    Addresses are tried in order of preference. Each but the last gets an even share of the time that is left, so that
    one dead address doesn't use up what a living one behind it would need.
    """

    def __init__(self, resolver: Resolver, egress: EgressPolicy, tls: ssl.SSLContext | None = None) -> None:
        self._resolver = resolver
        self._egress = egress
        self._tls = tls

    async def connect(
        self, origin: Origin, make: Callable[[], Connection], deadline_ns: int
    ) -> Connection | NoResponse | NotSent:
        """A connection to the origin, or why there is none. The caller cancels at the deadline."""
        try:
            addresses = [origin.host] if origin.is_address else await self._resolver.resolve(origin.host)
        except OSError as error:
            text = f"{origin.host}: {error.strerror or error}"
            return local_fault(error) or NoResponse("NAME_NOT_RESOLVED", text)
        refusals = {ip: self._egress.refusal(ip, origin.host, origin.port) for ip in addresses}
        permitted = [ip for ip, refusal in refusals.items() if refusal is None]
        if not permitted:
            return NoResponse("EGRESS_REFUSED", f"{origin.host} {next(iter(refusals.values()))}", final=True)
        return await self._try_each(origin, permitted, make, deadline_ns)

    async def _try_each(
        self, origin: Origin, addresses: list[str], make: Callable[[], Connection], deadline_ns: int
    ) -> Connection | NoResponse | NotSent:
        failure = NoResponse("CONNECTION_FAILED")
        unsent: NotSent | None = None
        for index, ip in enumerate(addresses):
            share_s = max(0, deadline_ns - time.monotonic_ns()) / 1e9 / (len(addresses) - index)
            try:
                # The last address has all that is left: its limit is the attempt's deadline, which is kept elsewhere.
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
        # An address that could not be tried might have answered.
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
            # Reads the system's authorities, which takes milliseconds: only once, and only if anyone uses TLS. Without a
            # descriptor it would find none, and say nothing.
            check_descriptors()
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls


def _tls_reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted: {error.verify_message}"
    return error.reason or str(error)

"""What the core asks its driver to do, and what it gets back."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from tocsin_client._error_bases import TransportError

Result = TypeVar("Result")


@dataclass(slots=True)
class Send:
    """Send one request. `timeout_s` covers everything from connecting to the last byte."""

    method: str
    #: Scheme, host, port and the prefix of all paths.
    base: str
    #: The rest of the URL.
    target: str
    headers: Mapping[str, str]
    body: bytes | None
    connect_timeout_s: float
    timeout_s: float

    @property
    def url(self) -> str:
        """The whole URL."""
        return self.base + self.target


@dataclass(slots=True)
class Sleep:
    """Do nothing for a while."""

    seconds: float


@dataclass(slots=True)
class Reply:
    """What was answered. The headers are looked up by their names in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


Step: TypeAlias = "Send | Sleep"
#: A Send is answered by a Reply, or by the TransportError that prevented one; a Sleep by None.
Outcome: TypeAlias = "Reply | TransportError | None"
Steps: TypeAlias = Generator[Step, Outcome, Result]

# Made from _async/runner.py by unasync.py; edit that.
"""What a client's parts share."""

from __future__ import annotations

from dataclasses import dataclass

from tocsin_client._core.session import Options, Session
from tocsin_client._core.steps import Result, Steps
from tocsin_client._transport_urllib3 import Urllib3Transport


@dataclass(frozen=True)
class Runner:
    """The session, how its steps are done, and the limits of this view of the client."""

    session: Session
    transport: Urllib3Transport
    options: Options

    def run(self, steps: Steps[Result]) -> Result:
        """Does the steps."""
        return self.transport.run(steps)

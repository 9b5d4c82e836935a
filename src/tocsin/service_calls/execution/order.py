"""One order to execute, from StartExecution to the end of its execution."""

from __future__ import annotations

from tocsin.model.answer import NoResponse
from tocsin.model.envelope import Envelope
from tocsin.model.secrets import SigningSecrets
from tocsin.ports.bus import Delivery
from tocsin.ports.http import Request
from tocsin.service_calls.execution.ports import ExecutionEnd, ExecutionStart
from tocsin.service_calls.messages import RequestSpec


class Order:
    """An order passes through these stages: waiting, beginning (with `request` and `start`), in flight (`logged`),
    ending (with `end`)."""

    __slots__ = (
        "causation_id",
        "correlation_id",
        "deliveries",
        "destination",
        "duration_us",
        "end",
        "execution_id",
        "logged",
        "not_sent",
        "request",
        "result",
        "secrets",
        "service_call_id",
        "signing",
        "spec",
        "start",
        "tenant_id",
        "uncertain",
    )

    def __init__(
        self, delivery: Delivery, service_call_id: str, execution_id: str, spec: RequestSpec, destination: str
    ) -> None:
        envelope = delivery.envelope
        #: Acknowledged together once the execution is logged. Several if the order was delivered again meanwhile.
        self.deliveries = [delivery]
        self.tenant_id = envelope.tenant_id
        self.service_call_id = service_call_id
        self.execution_id = execution_id
        self.correlation_id = envelope.correlation_id
        self.causation_id = envelope.id
        self.spec = spec
        self.destination = destination
        #: The request, or why it cannot be sent.
        self.request: Request | NoResponse | None = None
        #: The secrets that sign the request; None: it is not signed.
        self.signing: SigningSecrets | None = None
        #: Secrets in the request, to be redacted in the response.
        self.secrets: tuple[bytes, ...] = ()
        self.start: tuple[ExecutionStart, Envelope] | None = None
        self.end: tuple[ExecutionEnd, Envelope] | None = None
        self.result = ""
        self.duration_us = 0
        self.logged = False
        #: How often the request did not leave this machine.
        self.not_sent = 0
        #: Logging it failed; the log may contain it nonetheless.
        self.uncertain = False

"""One order to execute, from StartExecution to the end of its execution."""

from __future__ import annotations

from tocsin.agent.execution.ports import ExecutionEnd, ExecutionStart
from tocsin.agent.messages import RequestSpec
from tocsin.model.answer import NoResponse
from tocsin.model.envelope import Envelope
from tocsin.model.secrets import SigningSecrets
from tocsin.ports.bus import Delivery
from tocsin.ports.http import Request


class Order:
    """It is in one stage after the other: held, beginning (with `request` and `start`), under way (`logged`), ending (with
    `end`)."""

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
        #: Settled together, once the log has the execution: several when the order came again meanwhile.
        self.deliveries = [delivery]
        self.tenant_id = envelope.tenant_id
        self.service_call_id = service_call_id
        self.execution_id = execution_id
        self.correlation_id = envelope.correlation_id
        self.causation_id = envelope.id
        self.spec = spec
        self.destination = destination
        #: What is sent, or why nothing can be.
        self.request: Request | NoResponse | None = None
        #: With what its request is signed; None: it is not.
        self.signing: SigningSecrets | None = None
        #: Secrets that were sent, to be taken out of what comes back.
        self.secrets: tuple[bytes, ...] = ()
        self.start: tuple[ExecutionStart, Envelope] | None = None
        self.end: tuple[ExecutionEnd, Envelope] | None = None
        self.result = ""
        self.duration_us = 0
        self.logged = False
        #: How often its request could not be sent, for reasons of this machine's own.
        self.not_sent = 0
        #: To log it was tried and failed; the log may have it nonetheless.
        self.uncertain = False

"""All operations, in the order of the OpenAPI document. Routing, that document and its page are derived from them."""

from __future__ import annotations

from tocsin.web.api.audit import AuditHandlers
from tocsin.web.api.keys import KeyHandlers
from tocsin.web.api.namespaces import NamespaceHandlers
from tocsin.web.api.operation import Operation, declared_by
from tocsin.web.api.operators import OperatorHandlers
from tocsin.web.api.schedules import ScheduleHandlers
from tocsin.web.api.service_calls import ServiceCallHandlers
from tocsin.web.api.timers import TimerHandlers

FAMILIES = (
    TimerHandlers,
    ScheduleHandlers,
    NamespaceHandlers,
    KeyHandlers,
    AuditHandlers,
    ServiceCallHandlers,
    OperatorHandlers,
)
OPERATIONS: tuple[Operation, ...] = tuple(operation for family in FAMILIES for operation in declared_by(family))

"""What requests change of timers, schedules and service calls, for the audit export.

The audit trail has what people change of everything else; these are too many for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from tocsin.model.access import Role
from tocsin.ports.audit import AuditExport
from tocsin.web.api.operation import Operation
from tocsin.web.api.request import ApiRequest
from tocsin.web.http.repeated import REPLAYED, UNCHANGED

#: The groups of operations whose changes are reported.
_GROUPS = ("timers", "schedules", "calls")
#: Headers of answers to requests that changed nothing.
_NOTHING = (UNCHANGED, REPLAYED)


class _Named(msgspec.Struct):
    """What an encoded answer has of a timer's name."""

    namespace: str
    id: str


class _Result(msgspec.Struct):
    """The same of a timer in a batch; without one, there is an error."""

    timer: _Named | UnsetType = UNSET
    existing: bool = False
    replayed: bool = False


class _Results(msgspec.Struct):
    """The same of a batch."""

    results: list[_Result]


_named_decoder, _results_decoder = msgspec.json.Decoder(_Named), msgspec.json.Decoder(_Results)


class ChangeReports:
    """Reports to `export`."""

    def __init__(self, export: AuditExport) -> None:
        self._export = export

    def of(self, operation: Operation) -> Callable[[ApiRequest, object], None] | None:
        """What gets each request of an operation with its answer; None if it changes nothing that is reported."""
        group = operation.scope.partition("/")[0]
        if operation.role is not Role.WRITE or group not in _GROUPS:
            return None
        return partial(self._call if group == "calls" else self._row, operation.scope)

    def _call(self, operation: str, request: ApiRequest, answer: Any) -> None:
        """A service call: its path has its id, and the answer to a submission."""
        if _changed(request):
            parameters = request.parameters
            call_id = parameters.get("serviceCallId") or answer.service_call_id
            self._export.changed(operation, request.actor, parameters["tenantId"].lower(), [call_id])

    def _row(self, operation: str, request: ApiRequest, answer: Any) -> None:
        """Timers or a schedule: the answer names them, or the body, if the answer has none."""
        if not _changed(request):
            return
        if operation.startswith("timers/batch") or hasattr(answer, "results"):
            self._rows(operation, request, answer)
            return
        named = (
            _named_decoder.decode(answer) if isinstance(answer, bytes) else request.sent if answer is None else answer
        )
        id = next(
            found for name in ("id", "timer_id", "schedule_id") if (found := getattr(named, name, UNSET)) is not UNSET
        )
        self._export.changed(operation, request.actor, named.namespace, [id])

    def _rows(self, operation: str, request: ApiRequest, answer: Any) -> None:
        results = _results_decoder.decode(answer).results if isinstance(answer, bytes) else answer.results
        changed: dict[str, list[str]] = defaultdict(list)
        for each in results:
            if each.timer is not UNSET and each.existing is not True and each.replayed is not True:
                changed[each.timer.namespace].append(each.timer.id)
        actor = request.actor
        for namespace, ids in changed.items():
            self._export.changed(operation, actor, namespace, ids)


def _changed(request: ApiRequest) -> bool:
    """Whether the request wrote something."""
    dry = getattr(request.sent, "dry_run", False) is True
    return not dry and not any(header in _NOTHING for header in request.answer_headers)

"""Fills the limits dataclasses from the settings.

A limit is a setting if a group declares one of its name: `member_timeout` fills `EngineLimits.member_timeout_us`, and
`agent.retention` fills `AgentLimits.retention_us`. Any other limit is a constant, the default of its field.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

from tocsin.cluster.limits import ClusterLimits
from tocsin.http_client.limits import CallbackLimits
from tocsin.messaging.limits import BusLimits
from tocsin.model.instants import US_PER_SECOND
from tocsin.model.validation import InputLimits
from tocsin.service_calls.limits import AgentLimits
from tocsin.settings.values import US_PER_MS
from tocsin.stores.service_calls.settings import SqlSettings
from tocsin.timers.engine.limits import EngineLimits
from tocsin.web.api.request import ApiLimits
from tocsin.web.pages.limits import UiLimits

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    L = TypeVar("L", bound=DataclassInstance)

#: The dataclasses that settings fill, and the table of the file with their settings; "" for no table.
TABLE_OF: dict[type, str] = {
    EngineLimits: "",
    CallbackLimits: "callbacks",
    InputLimits: "",
    ApiLimits: "api",
    AgentLimits: "agent",
    BusLimits: "bus",
    SqlSettings: "agent_sql",
    ClusterLimits: "cluster",
    UiLimits: "ui",
}

#: Limits that a setting of another name fills, because it holds for timers and service calls alike.
_SHARED = {
    (AgentLimits, "retry_after_max_us"): "retry_after_max",
    (SqlSettings, "synchronous"): "sqlite_synchronous",
    (SqlSettings, "busy_timeout_ms"): "sqlite_busy_timeout",
}


def setting_of(kind: type, limit: str) -> str:
    """The field of Settings that fills a limit, if there is such a field."""
    if (kind, limit) in _SHARED:
        return _SHARED[kind, limit]
    name = limit.removesuffix("_us").removesuffix("_ms").removesuffix("_s")
    table = TABLE_OF[kind]
    return f"{table}_{name}" if table else name


def filled(limits: L, settings: Any) -> L:
    """The limits with the values of the settings that fill them, in the limits' own units."""
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(limits):
        name = setting_of(type(limits), field.name)
        if name in type(settings).model_fields:
            changes[field.name] = _in_unit_of(field.name, getattr(settings, name))
    return dataclasses.replace(limits, **changes)


def _in_unit_of(limit: str, value: Any) -> Any:
    """The setting's value, where it is microseconds, in the unit that the limit's name ends in."""
    if limit.endswith("_ms"):
        return max(1, value // US_PER_MS)
    if limit.endswith("_s"):
        return value / US_PER_SECOND
    return value

# Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
"""The operations."""

from __future__ import annotations

from typing import NamedTuple


class Operation(NamedTuple):
    """How an operation is requested; `path` has a name in braces for each parameter."""

    method: str
    path: str
    status: int


OPERATIONS: dict[str, Operation] = {
    "createTimer": Operation("POST", "/api/v1/timers/create", 200),
    "getTimer": Operation("POST", "/api/v1/timers/get", 200),
    "explainTimer": Operation("POST", "/api/v1/timers/explain", 200),
    "timerHistory": Operation("POST", "/api/v1/timers/history", 200),
    "updateTimer": Operation("POST", "/api/v1/timers/update", 200),
    "deleteTimer": Operation("POST", "/api/v1/timers/delete", 204),
    "replayTimers": Operation("POST", "/api/v1/timers/replay", 200),
    "listTimers": Operation("POST", "/api/v1/timers/list", 200),
    "batchCreateTimers": Operation("POST", "/api/v1/timers/batch/create", 200),
    "createSchedule": Operation("POST", "/api/v1/schedules/create", 200),
    "getSchedule": Operation("POST", "/api/v1/schedules/get", 200),
    "updateSchedule": Operation("POST", "/api/v1/schedules/update", 200),
    "listSchedules": Operation("POST", "/api/v1/schedules/list", 200),
    "pauseSchedule": Operation("POST", "/api/v1/schedules/pause", 200),
    "resumeSchedule": Operation("POST", "/api/v1/schedules/resume", 200),
    "triggerSchedule": Operation("POST", "/api/v1/schedules/trigger", 200),
    "backfillSchedule": Operation("POST", "/api/v1/schedules/backfill", 200),
    "skipSchedule": Operation("POST", "/api/v1/schedules/skip", 200),
    "unskipSchedule": Operation("POST", "/api/v1/schedules/unskip", 200),
    "replaySchedule": Operation("POST", "/api/v1/schedules/replay", 200),
    "previewSchedule": Operation("POST", "/api/v1/schedules/preview", 200),
    "scheduleHistory": Operation("POST", "/api/v1/schedules/history", 200),
    "deleteSchedule": Operation("POST", "/api/v1/schedules/delete", 204),
    "listFailures": Operation("POST", "/api/v1/failures/list", 200),
    "listFailureMembers": Operation("POST", "/api/v1/failures/members", 200),
    "dismissFailures": Operation("POST", "/api/v1/failures/dismiss", 200),
    "createJob": Operation("POST", "/api/v1/jobs/create", 202),
    "getJob": Operation("POST", "/api/v1/jobs/get", 200),
    "listJobs": Operation("POST", "/api/v1/jobs/list", 200),
    "pauseJob": Operation("POST", "/api/v1/jobs/pause", 200),
    "resumeJob": Operation("POST", "/api/v1/jobs/resume", 200),
    "cancelJob": Operation("POST", "/api/v1/jobs/cancel", 200),
    "setJobRate": Operation("POST", "/api/v1/jobs/setRate", 200),
    "createNamespace": Operation("POST", "/api/v1/namespaces/create", 200),
    "getNamespace": Operation("POST", "/api/v1/namespaces/get", 200),
    "listNamespaces": Operation("POST", "/api/v1/namespaces/list", 200),
    "updateNamespace": Operation("POST", "/api/v1/namespaces/update", 200),
    "deleteNamespace": Operation("POST", "/api/v1/namespaces/delete", 202),
    "rotateNamespaceSecret": Operation("POST", "/api/v1/namespaces/rotateSecret", 200),
    "putFlow": Operation("POST", "/api/v1/flows/put", 200),
    "getFlow": Operation("POST", "/api/v1/flows/get", 200),
    "listFlows": Operation("POST", "/api/v1/flows/list", 200),
    "pauseFlow": Operation("POST", "/api/v1/flows/pause", 200),
    "resumeFlow": Operation("POST", "/api/v1/flows/resume", 200),
    "deleteFlow": Operation("POST", "/api/v1/flows/delete", 204),
    "putCalendar": Operation("POST", "/api/v1/calendars/put", 200),
    "getCalendar": Operation("POST", "/api/v1/calendars/get", 200),
    "listCalendars": Operation("POST", "/api/v1/calendars/list", 200),
    "deleteCalendar": Operation("POST", "/api/v1/calendars/delete", 204),
    "listDestinations": Operation("POST", "/api/v1/destinations/list", 200),
    "pauseDestination": Operation("POST", "/api/v1/destinations/pause", 200),
    "resumeDestination": Operation("POST", "/api/v1/destinations/resume", 200),
    "probeDestination": Operation("POST", "/api/v1/destinations/probe", 200),
    "createKey": Operation("POST", "/api/v1/keys/create", 200),
    "listKeys": Operation("POST", "/api/v1/keys/list", 200),
    "revokeKey": Operation("POST", "/api/v1/keys/revoke", 204),
    "listAudit": Operation("POST", "/api/v1/audit/list", 200),
    "getStatistics": Operation("POST", "/api/v1/statistics/get", 200),
    "submitServiceCall": Operation("POST", "/api/v1/tenants/{tenantId}/service-calls", 202),
    "listServiceCalls": Operation("GET", "/api/v1/tenants/{tenantId}/service-calls", 200),
    "tagServiceCall": Operation("PUT", "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}/tags/{tag}", 204),
    "untagServiceCall": Operation("DELETE", "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}/tags/{tag}", 204),
    "traceServiceCall": Operation("GET", "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}/trace", 200),
    "getServiceCall": Operation("GET", "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}", 200),
    "deleteServiceCall": Operation("DELETE", "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}", 204),
    "retryServiceCall": Operation("POST", "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}/retry", 204),
    "rotateTenantSecret": Operation("POST", "/api/v1/tenants/rotateSecret", 200),
    "getCluster": Operation("GET", "/api/v1/cluster", 200),
}

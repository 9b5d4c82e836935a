// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client;

/** How each operation is requested; the path has a name in braces for each parameter. */
enum Operation {
    CREATE_TIMER("createTimer", "POST", "/api/v1/timers/create"),
    GET_TIMER("getTimer", "POST", "/api/v1/timers/get"),
    EXPLAIN_TIMER("explainTimer", "POST", "/api/v1/timers/explain"),
    TIMER_HISTORY("timerHistory", "POST", "/api/v1/timers/history"),
    UPDATE_TIMER("updateTimer", "POST", "/api/v1/timers/update"),
    DELETE_TIMER("deleteTimer", "POST", "/api/v1/timers/delete"),
    REPLAY_TIMERS("replayTimers", "POST", "/api/v1/timers/replay"),
    LIST_TIMERS("listTimers", "POST", "/api/v1/timers/list"),
    BATCH_CREATE_TIMERS("batchCreateTimers", "POST", "/api/v1/timers/batch/create"),
    CREATE_SCHEDULE("createSchedule", "POST", "/api/v1/schedules/create"),
    GET_SCHEDULE("getSchedule", "POST", "/api/v1/schedules/get"),
    UPDATE_SCHEDULE("updateSchedule", "POST", "/api/v1/schedules/update"),
    LIST_SCHEDULES("listSchedules", "POST", "/api/v1/schedules/list"),
    PAUSE_SCHEDULE("pauseSchedule", "POST", "/api/v1/schedules/pause"),
    RESUME_SCHEDULE("resumeSchedule", "POST", "/api/v1/schedules/resume"),
    TRIGGER_SCHEDULE("triggerSchedule", "POST", "/api/v1/schedules/trigger"),
    BACKFILL_SCHEDULE("backfillSchedule", "POST", "/api/v1/schedules/backfill"),
    SKIP_SCHEDULE("skipSchedule", "POST", "/api/v1/schedules/skip"),
    UNSKIP_SCHEDULE("unskipSchedule", "POST", "/api/v1/schedules/unskip"),
    REPLAY_SCHEDULE("replaySchedule", "POST", "/api/v1/schedules/replay"),
    PREVIEW_SCHEDULE("previewSchedule", "POST", "/api/v1/schedules/preview"),
    SCHEDULE_HISTORY("scheduleHistory", "POST", "/api/v1/schedules/history"),
    DELETE_SCHEDULE("deleteSchedule", "POST", "/api/v1/schedules/delete"),
    LIST_FAILURES("listFailures", "POST", "/api/v1/failures/list"),
    LIST_FAILURE_MEMBERS("listFailureMembers", "POST", "/api/v1/failures/members"),
    DISMISS_FAILURES("dismissFailures", "POST", "/api/v1/failures/dismiss"),
    CREATE_JOB("createJob", "POST", "/api/v1/jobs/create"),
    GET_JOB("getJob", "POST", "/api/v1/jobs/get"),
    LIST_JOBS("listJobs", "POST", "/api/v1/jobs/list"),
    PAUSE_JOB("pauseJob", "POST", "/api/v1/jobs/pause"),
    RESUME_JOB("resumeJob", "POST", "/api/v1/jobs/resume"),
    CANCEL_JOB("cancelJob", "POST", "/api/v1/jobs/cancel"),
    SET_JOB_RATE("setJobRate", "POST", "/api/v1/jobs/setRate"),
    CREATE_NAMESPACE("createNamespace", "POST", "/api/v1/namespaces/create"),
    GET_NAMESPACE("getNamespace", "POST", "/api/v1/namespaces/get"),
    LIST_NAMESPACES("listNamespaces", "POST", "/api/v1/namespaces/list"),
    UPDATE_NAMESPACE("updateNamespace", "POST", "/api/v1/namespaces/update"),
    DELETE_NAMESPACE("deleteNamespace", "POST", "/api/v1/namespaces/delete"),
    ROTATE_NAMESPACE_SECRET("rotateNamespaceSecret", "POST", "/api/v1/namespaces/rotateSecret"),
    PUT_FLOW("putFlow", "POST", "/api/v1/flows/put"),
    GET_FLOW("getFlow", "POST", "/api/v1/flows/get"),
    LIST_FLOWS("listFlows", "POST", "/api/v1/flows/list"),
    PAUSE_FLOW("pauseFlow", "POST", "/api/v1/flows/pause"),
    RESUME_FLOW("resumeFlow", "POST", "/api/v1/flows/resume"),
    DELETE_FLOW("deleteFlow", "POST", "/api/v1/flows/delete"),
    PUT_CALENDAR("putCalendar", "POST", "/api/v1/calendars/put"),
    GET_CALENDAR("getCalendar", "POST", "/api/v1/calendars/get"),
    LIST_CALENDARS("listCalendars", "POST", "/api/v1/calendars/list"),
    DELETE_CALENDAR("deleteCalendar", "POST", "/api/v1/calendars/delete"),
    LIST_DESTINATIONS("listDestinations", "POST", "/api/v1/destinations/list"),
    PAUSE_DESTINATION("pauseDestination", "POST", "/api/v1/destinations/pause"),
    RESUME_DESTINATION("resumeDestination", "POST", "/api/v1/destinations/resume"),
    PROBE_DESTINATION("probeDestination", "POST", "/api/v1/destinations/probe"),
    CREATE_KEY("createKey", "POST", "/api/v1/keys/create"),
    LIST_KEYS("listKeys", "POST", "/api/v1/keys/list"),
    REVOKE_KEY("revokeKey", "POST", "/api/v1/keys/revoke"),
    LIST_AUDIT("listAudit", "POST", "/api/v1/audit/list"),
    GET_STATISTICS("getStatistics", "POST", "/api/v1/statistics/get"),
    SUBMIT_SERVICE_CALL("submitServiceCall", "POST", "/api/v1/tenants/{tenantId}/service-calls"),
    LIST_SERVICE_CALLS("listServiceCalls", "GET", "/api/v1/tenants/{tenantId}/service-calls"),
    TAG_SERVICE_CALL("tagServiceCall", "PUT", "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}/tags/{tag}"),
    UNTAG_SERVICE_CALL("untagServiceCall", "DELETE", "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}/tags/{tag}"),
    TRACE_SERVICE_CALL("traceServiceCall", "GET", "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}/trace"),
    GET_SERVICE_CALL("getServiceCall", "GET", "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}"),
    DELETE_SERVICE_CALL("deleteServiceCall", "DELETE", "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}"),
    RETRY_SERVICE_CALL("retryServiceCall", "POST", "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}/retry"),
    ROTATE_TENANT_SECRET("rotateTenantSecret", "POST", "/api/v1/tenants/rotateSecret"),
    GET_CLUSTER("getCluster", "GET", "/api/v1/cluster");

    final String id;
    final String method;
    final String path;

    Operation(String id, String method, String path) {
        this.id = id;
        this.method = method;
        this.path = path;
    }
}
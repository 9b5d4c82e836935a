// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client;

/** How each operation is requested; the path has a name in braces for each parameter. */
enum Operation {
    CREATE_TIMER("POST", "/api/v1/timers/create"),
    GET_TIMER("POST", "/api/v1/timers/get"),
    EXPLAIN_TIMER("POST", "/api/v1/timers/explain"),
    TIMER_HISTORY("POST", "/api/v1/timers/history"),
    UPDATE_TIMER("POST", "/api/v1/timers/update"),
    DELETE_TIMER("POST", "/api/v1/timers/delete"),
    LIST_TIMERS("POST", "/api/v1/timers/list"),
    BATCH_CREATE_TIMERS("POST", "/api/v1/timers/batch/create"),
    CREATE_SCHEDULE("POST", "/api/v1/schedules/create"),
    GET_SCHEDULE("POST", "/api/v1/schedules/get"),
    UPDATE_SCHEDULE("POST", "/api/v1/schedules/update"),
    LIST_SCHEDULES("POST", "/api/v1/schedules/list"),
    PAUSE_SCHEDULE("POST", "/api/v1/schedules/pause"),
    RESUME_SCHEDULE("POST", "/api/v1/schedules/resume"),
    TRIGGER_SCHEDULE("POST", "/api/v1/schedules/trigger"),
    BACKFILL_SCHEDULE("POST", "/api/v1/schedules/backfill"),
    PREVIEW_SCHEDULE("POST", "/api/v1/schedules/preview"),
    SCHEDULE_HISTORY("POST", "/api/v1/schedules/history"),
    DELETE_SCHEDULE("POST", "/api/v1/schedules/delete"),
    CREATE_NAMESPACE("POST", "/api/v1/namespaces/create"),
    LIST_NAMESPACES("POST", "/api/v1/namespaces/list"),
    UPDATE_NAMESPACE("POST", "/api/v1/namespaces/update"),
    ROTATE_NAMESPACE_SECRET("POST", "/api/v1/namespaces/rotateSecret"),
    CREATE_KEY("POST", "/api/v1/keys/create"),
    LIST_KEYS("POST", "/api/v1/keys/list"),
    REVOKE_KEY("POST", "/api/v1/keys/revoke"),
    LIST_AUDIT("POST", "/api/v1/audit/list"),
    SUBMIT_SERVICE_CALL("POST", "/api/v1/tenants/{tenantId}/service-calls"),
    LIST_SERVICE_CALLS("GET", "/api/v1/tenants/{tenantId}/service-calls"),
    TAG_SERVICE_CALL("PUT", "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}/tags/{tag}"),
    UNTAG_SERVICE_CALL("DELETE", "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}/tags/{tag}"),
    TRACE_SERVICE_CALL("GET", "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}/trace"),
    GET_SERVICE_CALL("GET", "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}"),
    DELETE_SERVICE_CALL("DELETE", "/api/v1/tenants/{tenantId}/service-calls/{serviceCallId}"),
    GET_CLUSTER("GET", "/api/v1/cluster");

    final String method;
    final String path;

    Operation(String method, String path) {
        this.method = method;
        this.path = path;
    }
}
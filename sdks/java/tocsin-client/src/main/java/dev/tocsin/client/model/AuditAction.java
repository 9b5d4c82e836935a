// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * The action that an entry records. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record AuditAction(String value) implements OpenEnum {
    /** sign_in. */
    public static final AuditAction SIGN_IN = new AuditAction("sign_in");

    /** sign_in_failed. */
    public static final AuditAction SIGN_IN_FAILED = new AuditAction("sign_in_failed");

    /** sign_out. */
    public static final AuditAction SIGN_OUT = new AuditAction("sign_out");

    /** key_created. */
    public static final AuditAction KEY_CREATED = new AuditAction("key_created");

    /** key_changed. */
    public static final AuditAction KEY_CHANGED = new AuditAction("key_changed");

    /** key_deleted. */
    public static final AuditAction KEY_DELETED = new AuditAction("key_deleted");

    /** namespace_created. */
    public static final AuditAction NAMESPACE_CREATED = new AuditAction("namespace_created");

    /** namespace_changed. */
    public static final AuditAction NAMESPACE_CHANGED = new AuditAction("namespace_changed");

    /** namespace_deleted. */
    public static final AuditAction NAMESPACE_DELETED = new AuditAction("namespace_deleted");

    /** secret_rotated. */
    public static final AuditAction SECRET_ROTATED = new AuditAction("secret_rotated");

    /** tenant_labeled. */
    public static final AuditAction TENANT_LABELED = new AuditAction("tenant_labeled");

    /** failures_dismissed. */
    public static final AuditAction FAILURES_DISMISSED = new AuditAction("failures_dismissed");

    /** flow_changed. */
    public static final AuditAction FLOW_CHANGED = new AuditAction("flow_changed");

    /** flow_deleted. */
    public static final AuditAction FLOW_DELETED = new AuditAction("flow_deleted");

    /** calendar_changed. */
    public static final AuditAction CALENDAR_CHANGED = new AuditAction("calendar_changed");

    /** calendar_deleted. */
    public static final AuditAction CALENDAR_DELETED = new AuditAction("calendar_deleted");

    /** credential_changed. */
    public static final AuditAction CREDENTIAL_CHANGED = new AuditAction("credential_changed");

    /** credential_deleted. */
    public static final AuditAction CREDENTIAL_DELETED = new AuditAction("credential_deleted");

    /** monitor_changed. */
    public static final AuditAction MONITOR_CHANGED = new AuditAction("monitor_changed");

    /** monitor_paused. */
    public static final AuditAction MONITOR_PAUSED = new AuditAction("monitor_paused");

    /** monitor_resumed. */
    public static final AuditAction MONITOR_RESUMED = new AuditAction("monitor_resumed");

    /** monitor_rotated. */
    public static final AuditAction MONITOR_ROTATED = new AuditAction("monitor_rotated");

    /** monitor_deleted. */
    public static final AuditAction MONITOR_DELETED = new AuditAction("monitor_deleted");

    /** destination_changed. */
    public static final AuditAction DESTINATION_CHANGED = new AuditAction("destination_changed");

    /** job_created. */
    public static final AuditAction JOB_CREATED = new AuditAction("job_created");

    /** job_changed. */
    public static final AuditAction JOB_CHANGED = new AuditAction("job_changed");

    /** job_ended. */
    public static final AuditAction JOB_ENDED = new AuditAction("job_ended");

    /** inbox_opened. */
    public static final AuditAction INBOX_OPENED = new AuditAction("inbox_opened");

    /** inbox_replayed. */
    public static final AuditAction INBOX_REPLAYED = new AuditAction("inbox_replayed");

    /** inbox_deleted. */
    public static final AuditAction INBOX_DELETED = new AuditAction("inbox_deleted");

    /** timer_created. */
    public static final AuditAction TIMER_CREATED = new AuditAction("timer_created");

    /** timers_canceled. */
    public static final AuditAction TIMERS_CANCELED = new AuditAction("timers_canceled");

    /** timers_replayed. */
    public static final AuditAction TIMERS_REPLAYED = new AuditAction("timers_replayed");

    /** schedule_created. */
    public static final AuditAction SCHEDULE_CREATED = new AuditAction("schedule_created");

    /** schedule_deleted. */
    public static final AuditAction SCHEDULE_DELETED = new AuditAction("schedule_deleted");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static AuditAction fromJson(Json source) {
        return new AuditAction(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}
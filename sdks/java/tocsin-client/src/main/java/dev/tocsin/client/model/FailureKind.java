// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import dev.tocsin.client.OpenEnum;

/**
 * Why an attempt failed; docs/reference/errors.md has a remedy for each. Later servers may send values that have no constant here.
 *
 * @param value as the API writes it
 */
public record FailureKind(String value) implements OpenEnum {
    /** NO_STREAM. */
    public static final FailureKind NO_STREAM = new FailureKind("NO_STREAM");

    /** NATS_REFUSED. */
    public static final FailureKind NATS_REFUSED = new FailureKind("NATS_REFUSED");

    /** CALLBACK_NOT_OK. */
    public static final FailureKind CALLBACK_NOT_OK = new FailureKind("CALLBACK_NOT_OK");

    /** INVALID_CALLBACK_RESPONSE. */
    public static final FailureKind INVALID_CALLBACK_RESPONSE = new FailureKind("INVALID_CALLBACK_RESPONSE");

    /** NO_RESULT. */
    public static final FailureKind NO_RESULT = new FailureKind("NO_RESULT");

    /** TIMEOUT. */
    public static final FailureKind TIMEOUT = new FailureKind("TIMEOUT");

    /** CONNECTION_FAILED. */
    public static final FailureKind CONNECTION_FAILED = new FailureKind("CONNECTION_FAILED");

    /** CONNECTION_CLOSED. */
    public static final FailureKind CONNECTION_CLOSED = new FailureKind("CONNECTION_CLOSED");

    /** NAME_NOT_RESOLVED. */
    public static final FailureKind NAME_NOT_RESOLVED = new FailureKind("NAME_NOT_RESOLVED");

    /** TLS_FAILED. */
    public static final FailureKind TLS_FAILED = new FailureKind("TLS_FAILED");

    /** BAD_RESPONSE. */
    public static final FailureKind BAD_RESPONSE = new FailureKind("BAD_RESPONSE");

    /** EGRESS_REFUSED. */
    public static final FailureKind EGRESS_REFUSED = new FailureKind("EGRESS_REFUSED");

    /** SECRET_UNREADABLE. */
    public static final FailureKind SECRET_UNREADABLE = new FailureKind("SECRET_UNREADABLE");

    /** INVALID_REQUEST. */
    public static final FailureKind INVALID_REQUEST = new FailureKind("INVALID_REQUEST");

    /** INVALID_SECRET. */
    public static final FailureKind INVALID_SECRET = new FailureKind("INVALID_SECRET");

    /** SHUTDOWN. */
    public static final FailureKind SHUTDOWN = new FailureKind("SHUTDOWN");

    /** EXPIRED. */
    public static final FailureKind EXPIRED = new FailureKind("EXPIRED");

    /** HTTP_STATUS. */
    public static final FailureKind HTTP_STATUS = new FailureKind("HTTP_STATUS");

    /** INTERRUPTED. */
    public static final FailureKind INTERRUPTED = new FailureKind("INTERRUPTED");

    /** START_TIMEOUT. */
    public static final FailureKind START_TIMEOUT = new FailureKind("START_TIMEOUT");

    /** WATCHDOG_TIMEOUT. */
    public static final FailureKind WATCHDOG_TIMEOUT = new FailureKind("WATCHDOG_TIMEOUT");

    /**
     * Reads a value, known or not.
     *
     * @param source a JSON string
     * @return the value
     */
    public static FailureKind fromJson(Json source) {
        return new FailureKind(source.asString());
    }

    @Override
    public String toString() {
        return value;
    }
}
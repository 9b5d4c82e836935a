// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A rule with all its limits; send at least one of <code>perKey</code>, <code>total</code>,
 * <code>callbackBatch</code> and a true <code>closeOnRetryAfter</code>. Without <code>managedBy</code>
 * the rule keeps it; null removes it.
 *
 * @param namespace The namespace's name.
 * @param match The flow key that the rule is for, or a prefix of keys, which ends with a colon.
 * @param perKey The limits of each flow key by itself.
 * @param total The limits of all flow keys of the rule together.
 * @param closeOnRetryAfter Whether an answer 429 or 503 with Retry-After lets nothing more of its flow key begin until then.
 * Default false.
 * @param callbackBatch Due timers with the same URL, method, headers and timeout are sent in one request, which the
 * receiver answers timer by timer.
 * @param managedBy The declaration that it comes from, such as the name of a repository.
 * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
 * none.
 */
public record PutFlow(
        String namespace,
        String match,
        Field<FlowLimits> perKey,
        Field<FlowLimits> total,
        Field<Boolean> closeOnRetryAfter,
        Field<CallbackBatch> callbackBatch,
        Field<String> managedBy,
        Field<Long> expectedVersion) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param namespace The namespace's name.
     * @param match The flow key that the rule is for, or a prefix of keys, which ends with a colon.
     * @return the request
     */
    public static PutFlow of(String namespace, String match) {
        return new PutFlow(
                namespace,
                match,
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * The limits of each flow key by itself.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutFlow perKey(FlowLimits value) {
        return perKey(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param perKey The limits of each flow key by itself.
     * @return a copy with it
     */
    public PutFlow perKey(Field<FlowLimits> perKey) {
        return new PutFlow(
                namespace,
                match,
                perKey,
                total,
                closeOnRetryAfter,
                callbackBatch,
                managedBy,
                expectedVersion);
    }

    /**
     * The limits of all flow keys of the rule together.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutFlow total(FlowLimits value) {
        return total(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param total The limits of all flow keys of the rule together.
     * @return a copy with it
     */
    public PutFlow total(Field<FlowLimits> total) {
        return new PutFlow(
                namespace,
                match,
                perKey,
                total,
                closeOnRetryAfter,
                callbackBatch,
                managedBy,
                expectedVersion);
    }

    /**
     * Whether an answer 429 or 503 with Retry-After lets nothing more of its flow key begin until then.
     * Default false.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutFlow closeOnRetryAfter(boolean value) {
        return closeOnRetryAfter(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param closeOnRetryAfter Whether an answer 429 or 503 with Retry-After lets nothing more of its flow key begin until then.
     * Default false.
     * @return a copy with it
     */
    public PutFlow closeOnRetryAfter(Field<Boolean> closeOnRetryAfter) {
        return new PutFlow(
                namespace,
                match,
                perKey,
                total,
                closeOnRetryAfter,
                callbackBatch,
                managedBy,
                expectedVersion);
    }

    /**
     * Due timers with the same URL, method, headers and timeout are sent in one request, which the
     * receiver answers timer by timer.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutFlow callbackBatch(CallbackBatch value) {
        return callbackBatch(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param callbackBatch Due timers with the same URL, method, headers and timeout are sent in one request, which the
     * receiver answers timer by timer.
     * @return a copy with it
     */
    public PutFlow callbackBatch(Field<CallbackBatch> callbackBatch) {
        return new PutFlow(
                namespace,
                match,
                perKey,
                total,
                closeOnRetryAfter,
                callbackBatch,
                managedBy,
                expectedVersion);
    }

    /**
     * The declaration that it comes from, such as the name of a repository.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutFlow managedBy(String value) {
        return managedBy(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param managedBy The declaration that it comes from, such as the name of a repository.
     * @return a copy with it
     */
    public PutFlow managedBy(Field<String> managedBy) {
        return new PutFlow(
                namespace,
                match,
                perKey,
                total,
                closeOnRetryAfter,
                callbackBatch,
                managedBy,
                expectedVersion);
    }

    /**
     * The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     *
     * @param value its value
     * @return a copy with it
     */
    public PutFlow expectedVersion(long value) {
        return expectedVersion(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param expectedVersion The version that it must have; otherwise nothing is written (VERSION_CONFLICT). 0: there must be
     * none.
     * @return a copy with it
     */
    public PutFlow expectedVersion(Field<Long> expectedVersion) {
        return new PutFlow(
                namespace,
                match,
                perKey,
                total,
                closeOnRetryAfter,
                callbackBatch,
                managedBy,
                expectedVersion);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("namespace", Json.of(namespace));
        sent.put("match", Json.of(match));
        perKey.putInto(sent, "perKey", FlowLimits::toJson);
        total.putInto(sent, "total", FlowLimits::toJson);
        closeOnRetryAfter.putInto(sent, "closeOnRetryAfter", Json::of);
        callbackBatch.putInto(sent, "callbackBatch", CallbackBatch::toJson);
        managedBy.putInto(sent, "managedBy", Json::of);
        expectedVersion.putInto(sent, "expectedVersion", Json::of);
        return Json.object(sent);
    }
}
// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import dev.tocsin.client.Values;
import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A service call to submit.
 *
 * @param name A display name.
 * @param requestSpec requestSpec
 * @param dueAt When to send the request: an RFC 3339 instant with a time zone. If it is in the past, or neither
 * <code>dueAt</code> nor <code>delay</code> is given: now.
 * @param delay Delay from now, instead of <code>dueAt</code>.
 * @param tags Labels to filter lists by.
 * @param serviceCallId The call's id, a UUID of version 7. Without one, the server generates it.
 * @param idempotencyKey Makes the submission safe to repeat. Equivalent to the header Idempotency-Key.
 * @param flowKey The flow that limits how many of its attempts begin and are in flight at once, together with timers,
 * if a rule of the agent's namespace (<code>agent.flow_namespace</code>) matches it.
 * @param onFailure Who is notified when it has failed.
 * @param onSuccess Who is notified when it has succeeded.
 */
public record SubmitServiceCall(
        String name,
        RequestSpec requestSpec,
        Field<Instant> dueAt,
        Field<Duration> delay,
        Field<List<String>> tags,
        Field<String> serviceCallId,
        Field<String> idempotencyKey,
        Field<String> flowKey,
        Field<CallHook> onFailure,
        Field<CallHook> onSuccess) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param name A display name.
     * @param requestSpec requestSpec
     * @return the request
     */
    public static SubmitServiceCall of(String name, RequestSpec requestSpec) {
        return new SubmitServiceCall(
                name,
                requestSpec,
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent(),
                Field.absent());
    }

    /**
     * When to send the request: an RFC 3339 instant with a time zone. If it is in the past, or neither
     * <code>dueAt</code> nor <code>delay</code> is given: now.
     *
     * @param value its value
     * @return a copy with it
     */
    public SubmitServiceCall dueAt(Instant value) {
        return dueAt(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param dueAt When to send the request: an RFC 3339 instant with a time zone. If it is in the past, or neither
     * <code>dueAt</code> nor <code>delay</code> is given: now.
     * @return a copy with it
     */
    public SubmitServiceCall dueAt(Field<Instant> dueAt) {
        return new SubmitServiceCall(
                name,
                requestSpec,
                dueAt,
                delay,
                tags,
                serviceCallId,
                idempotencyKey,
                flowKey,
                onFailure,
                onSuccess);
    }

    /**
     * Delay from now, instead of <code>dueAt</code>.
     *
     * @param value its value
     * @return a copy with it
     */
    public SubmitServiceCall delay(Duration value) {
        return delay(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param delay Delay from now, instead of <code>dueAt</code>.
     * @return a copy with it
     */
    public SubmitServiceCall delay(Field<Duration> delay) {
        return new SubmitServiceCall(
                name,
                requestSpec,
                dueAt,
                delay,
                tags,
                serviceCallId,
                idempotencyKey,
                flowKey,
                onFailure,
                onSuccess);
    }

    /**
     * Labels to filter lists by.
     *
     * @param value its value
     * @return a copy with it
     */
    public SubmitServiceCall tags(List<String> value) {
        return tags(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param tags Labels to filter lists by.
     * @return a copy with it
     */
    public SubmitServiceCall tags(Field<List<String>> tags) {
        return new SubmitServiceCall(
                name,
                requestSpec,
                dueAt,
                delay,
                tags,
                serviceCallId,
                idempotencyKey,
                flowKey,
                onFailure,
                onSuccess);
    }

    /**
     * The call's id, a UUID of version 7. Without one, the server generates it.
     *
     * @param value its value
     * @return a copy with it
     */
    public SubmitServiceCall serviceCallId(String value) {
        return serviceCallId(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param serviceCallId The call's id, a UUID of version 7. Without one, the server generates it.
     * @return a copy with it
     */
    public SubmitServiceCall serviceCallId(Field<String> serviceCallId) {
        return new SubmitServiceCall(
                name,
                requestSpec,
                dueAt,
                delay,
                tags,
                serviceCallId,
                idempotencyKey,
                flowKey,
                onFailure,
                onSuccess);
    }

    /**
     * Makes the submission safe to repeat. Equivalent to the header Idempotency-Key.
     *
     * @param value its value
     * @return a copy with it
     */
    public SubmitServiceCall idempotencyKey(String value) {
        return idempotencyKey(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param idempotencyKey Makes the submission safe to repeat. Equivalent to the header Idempotency-Key.
     * @return a copy with it
     */
    public SubmitServiceCall idempotencyKey(Field<String> idempotencyKey) {
        return new SubmitServiceCall(
                name,
                requestSpec,
                dueAt,
                delay,
                tags,
                serviceCallId,
                idempotencyKey,
                flowKey,
                onFailure,
                onSuccess);
    }

    /**
     * The flow that limits how many of its attempts begin and are in flight at once, together with timers,
     * if a rule of the agent's namespace (<code>agent.flow_namespace</code>) matches it.
     *
     * @param value its value
     * @return a copy with it
     */
    public SubmitServiceCall flowKey(String value) {
        return flowKey(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param flowKey The flow that limits how many of its attempts begin and are in flight at once, together with timers,
     * if a rule of the agent's namespace (<code>agent.flow_namespace</code>) matches it.
     * @return a copy with it
     */
    public SubmitServiceCall flowKey(Field<String> flowKey) {
        return new SubmitServiceCall(
                name,
                requestSpec,
                dueAt,
                delay,
                tags,
                serviceCallId,
                idempotencyKey,
                flowKey,
                onFailure,
                onSuccess);
    }

    /**
     * Who is notified when it has failed.
     *
     * @param value its value
     * @return a copy with it
     */
    public SubmitServiceCall onFailure(CallHook value) {
        return onFailure(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onFailure Who is notified when it has failed.
     * @return a copy with it
     */
    public SubmitServiceCall onFailure(Field<CallHook> onFailure) {
        return new SubmitServiceCall(
                name,
                requestSpec,
                dueAt,
                delay,
                tags,
                serviceCallId,
                idempotencyKey,
                flowKey,
                onFailure,
                onSuccess);
    }

    /**
     * Who is notified when it has succeeded.
     *
     * @param value its value
     * @return a copy with it
     */
    public SubmitServiceCall onSuccess(CallHook value) {
        return onSuccess(Field.of(value));
    }

    /**
     * Sets the member to a value, null, or absent.
     *
     * @param onSuccess Who is notified when it has succeeded.
     * @return a copy with it
     */
    public SubmitServiceCall onSuccess(Field<CallHook> onSuccess) {
        return new SubmitServiceCall(
                name,
                requestSpec,
                dueAt,
                delay,
                tags,
                serviceCallId,
                idempotencyKey,
                flowKey,
                onFailure,
                onSuccess);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("name", Json.of(name));
        sent.put("requestSpec", requestSpec.toJson());
        dueAt.putInto(sent, "dueAt", Values::toJson);
        delay.putInto(sent, "delay", Values::toJson);
        tags.putInto(sent, "tags", each -> Json.array(each, Json::of));
        serviceCallId.putInto(sent, "serviceCallId", Json::of);
        idempotencyKey.putInto(sent, "idempotencyKey", Json::of);
        flowKey.putInto(sent, "flowKey", Json::of);
        onFailure.putInto(sent, "onFailure", CallHook::toJson);
        onSuccess.putInto(sent, "onSuccess", CallHook::toJson);
        return Json.object(sent);
    }
}
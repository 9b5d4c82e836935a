package dev.tocsin.client;

import dev.tocsin.client.error.ServiceCallNotFailedException;
import dev.tocsin.client.error.ServiceCallNotFoundException;
import dev.tocsin.client.error.ServiceCallNotScheduledException;
import dev.tocsin.client.error.WaitTimeoutException;
import dev.tocsin.client.model.RotateTenantSecret;
import dev.tocsin.client.model.RotatedTenantSecret;
import dev.tocsin.client.model.ServiceCall;
import dev.tocsin.client.model.ServiceCallPage;
import dev.tocsin.client.model.ServiceCallStatus;
import dev.tocsin.client.model.ServiceCallSummary;
import dev.tocsin.client.model.ServiceCallTrace;
import dev.tocsin.client.model.SubmitServiceCall;
import dev.tocsin.client.model.SubmittedServiceCall;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * The service calls of a tenant: requests that the server sends, and whose answers it keeps; for programs that
 * do not block.
 */
public final class AsyncCalls {
    private static final Set<ServiceCallStatus> FINISHED = Set.of(ServiceCallStatus.SUCCEEDED, ServiceCallStatus.FAILED);

    private final Steps steps;
    private final String tenantId;

    AsyncCalls(Steps steps, String tenantId) {
        this.steps = steps;
        this.tenantId = tenantId;
    }

    /**
     * Submits a call. Its id, a UUID of version 7, is made here unless you give one, so that a lost answer never submits it
     * twice.
     *
     * @param submission the call
     * @return its id and status
     */
    public CompletableFuture<SubmittedServiceCall> submit(SubmitServiceCall submission) {
        SubmitServiceCall named = submission.serviceCallId().isPresent()
                ? submission : submission.serviceCallId(Place.uuid7(System.currentTimeMillis()).toString());
        Call call = Call.at(Operation.SUBMIT_SERVICE_CALL, Map.of("tenantId", tenantId)).body(named.toJson());
        return steps.ask(call, SubmittedServiceCall::fromJson);
    }

    /**
     * Reads a call with its executions.
     *
     * @param serviceCallId its id
     * @return the call; fails with {@link ServiceCallNotFoundException} if there is none
     */
    public CompletableFuture<ServiceCall> get(String serviceCallId) {
        return steps.ask(Call.at(Operation.GET_SERVICE_CALL, path(serviceCallId)), ServiceCall::fromJson);
    }

    /**
     * Lists calls, newest first.
     *
     * @param query which calls; its limit is the size of a page
     * @return the calls
     */
    public AsyncPages<ServiceCallSummary> list(ListServiceCalls query) {
        return new AsyncPages<>(after -> {
            ListServiceCalls page = after == null ? query : query.with("cursor", List.of(after));
            Call call = Call.at(Operation.LIST_SERVICE_CALLS, Map.of("tenantId", tenantId)).query(page.query());
            return steps.ask(call, json -> {
                ServiceCallPage found = ServiceCallPage.fromJson(json);
                return new Page<>(found.serviceCalls(), found.nextCursor());
            });
        });
    }

    /**
     * Deletes a call that has not started.
     *
     * @param serviceCallId its id
     * @return completed when it is done; fails with {@link ServiceCallNotScheduledException} if it has started
     */
    public CompletableFuture<Void> delete(String serviceCallId) {
        Call get = Call.at(Operation.GET_SERVICE_CALL, path(serviceCallId));
        return steps.delete(Call.at(Operation.DELETE_SERVICE_CALL, path(serviceCallId)), get, found -> false);
    }

    /**
     * Adds a tag.
     *
     * @param serviceCallId its id
     * @param tag the tag
     * @return completed when it is done
     */
    public CompletableFuture<Void> tag(String serviceCallId, String tag) {
        return steps.order(Call.at(Operation.TAG_SERVICE_CALL, path(serviceCallId, tag)));
    }

    /**
     * Removes a tag.
     *
     * @param serviceCallId its id
     * @param tag the tag
     * @return completed when it is done
     */
    public CompletableFuture<Void> untag(String serviceCallId, String tag) {
        return steps.order(Call.at(Operation.UNTAG_SERVICE_CALL, path(serviceCallId, tag)));
    }

    /**
     * Makes another attempt of a call that has failed, under the same webhook-id. A lost answer is not followed by a retry: a
     * TransportException with {@code maybeDone}.
     *
     * @param serviceCallId its id
     * @return completed when it is done; fails with {@link ServiceCallNotFailedException} if the call has not failed
     */
    public CompletableFuture<Void> retry(String serviceCallId) {
        return steps.order(Call.at(Operation.RETRY_SERVICE_CALL, path(serviceCallId)).unsafe());
    }

    /**
     * Shows what happened to a call, message by message.
     *
     * @param serviceCallId its id
     * @return the messages
     */
    public CompletableFuture<ServiceCallTrace> trace(String serviceCallId) {
        return steps.ask(Call.at(Operation.TRACE_SERVICE_CALL, path(serviceCallId)), ServiceCallTrace::fromJson);
    }

    /**
     * Signs the tenant's calls with a new secret, and during the grace with the former one, too. A lost answer is not followed
     * by a retry: a TransportException with {@code maybeDone}.
     *
     * @param rotation its tenant is replaced by this one
     * @return the secret; no later answer shows it
     */
    public CompletableFuture<RotatedTenantSecret> rotateSecret(RotateTenantSecret rotation) {
        Json body = rotation.toJson().with("tenantId", tenantId);
        return steps.ask(Call.of(Operation.ROTATE_TENANT_SECRET, body).unsafe(), RotatedTenantSecret::fromJson);
    }

    /**
     * Waits until a call has succeeded or failed.
     *
     * @param serviceCallId its id
     * @param timeout how long at most; null: however long it takes
     * @return the finished call; fails with {@link WaitTimeoutException} if that took longer
     */
    public CompletableFuture<ServiceCall> await(String serviceCallId, @Nullable Duration timeout) {
        return steps.await(
                Call.at(Operation.GET_SERVICE_CALL, path(serviceCallId)),
                ServiceCall::fromJson,
                call -> FINISHED.contains(call.status()),
                call -> call.nextAttemptAt() == null ? call.dueAt() : call.nextAttemptAt(),
                timeout,
                "service call " + serviceCallId);
    }

    private Map<String, String> path(String serviceCallId) {
        return Map.of("tenantId", tenantId, "serviceCallId", serviceCallId);
    }

    private Map<String, String> path(String serviceCallId, String tag) {
        return Map.of("tenantId", tenantId, "serviceCallId", serviceCallId, "tag", tag);
    }
}

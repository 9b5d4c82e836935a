package dev.tocsin.client;

import dev.tocsin.client.error.ServiceCallNotFailedException;
import dev.tocsin.client.error.ServiceCallNotFoundException;
import dev.tocsin.client.error.ServiceCallNotScheduledException;
import dev.tocsin.client.error.WaitTimeoutException;
import dev.tocsin.client.model.RotateTenantSecret;
import dev.tocsin.client.model.RotatedTenantSecret;
import dev.tocsin.client.model.ServiceCall;
import dev.tocsin.client.model.ServiceCallSummary;
import dev.tocsin.client.model.ServiceCallTrace;
import dev.tocsin.client.model.SubmitServiceCall;
import dev.tocsin.client.model.SubmittedServiceCall;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** The service calls of a tenant: requests that the server sends, and whose answers it keeps. */
public final class Calls {
    private final AsyncCalls async;

    Calls(AsyncCalls async) {
        this.async = async;
    }

    /**
     * Submits a call. Its id, a UUID of version 7, is made here unless you give one, so that a lost answer never submits it
     * twice.
     *
     * @param submission the call
     * @return its id and status
     */
    public SubmittedServiceCall submit(SubmitServiceCall submission) {
        return Run.join(async.submit(submission));
    }

    /**
     * Reads a call with its executions.
     *
     * @param serviceCallId its id
     * @return the call
     * @throws ServiceCallNotFoundException if there is none
     */
    public ServiceCall get(String serviceCallId) {
        return Run.join(async.get(serviceCallId));
    }

    /**
     * Lists calls, newest first.
     *
     * @param query which calls; its limit is the size of a page
     * @return the calls
     */
    public Pages<ServiceCallSummary> list(ListServiceCalls query) {
        return new Pages<>(async.list(query));
    }

    /**
     * Deletes a call that has not started.
     *
     * @param serviceCallId its id
     * @throws ServiceCallNotScheduledException if it has started
     */
    public void delete(String serviceCallId) {
        Run.join(async.delete(serviceCallId));
    }

    /**
     * Adds a tag.
     *
     * @param serviceCallId its id
     * @param tag the tag
     */
    public void tag(String serviceCallId, String tag) {
        Run.join(async.tag(serviceCallId, tag));
    }

    /**
     * Removes a tag.
     *
     * @param serviceCallId its id
     * @param tag the tag
     */
    public void untag(String serviceCallId, String tag) {
        Run.join(async.untag(serviceCallId, tag));
    }

    /**
     * Makes another attempt of a call that has failed, under the same webhook-id. A lost answer is not followed by a retry: a
     * TransportException with {@code maybeDone}.
     *
     * @param serviceCallId its id
     * @throws ServiceCallNotFailedException if the call has not failed
     */
    public void retry(String serviceCallId) {
        Run.join(async.retry(serviceCallId));
    }

    /**
     * Shows what happened to a call, message by message.
     *
     * @param serviceCallId its id
     * @return the messages
     */
    public ServiceCallTrace trace(String serviceCallId) {
        return Run.join(async.trace(serviceCallId));
    }

    /**
     * Signs the tenant's calls with a new secret, and during the grace with the former one, too. A lost answer is not followed
     * by a retry: a TransportException with {@code maybeDone}.
     *
     * @param rotation its tenant is replaced by this one
     * @return the secret; no later answer shows it
     */
    public RotatedTenantSecret rotateSecret(RotateTenantSecret rotation) {
        return Run.join(async.rotateSecret(rotation));
    }

    /**
     * Waits until a call has succeeded or failed.
     *
     * @param serviceCallId its id
     * @param timeout how long at most; null: however long it takes
     * @return the finished call
     * @throws WaitTimeoutException if that took longer
     */
    public ServiceCall await(String serviceCallId, @Nullable Duration timeout) {
        return Run.join(async.await(serviceCallId, timeout));
    }
}

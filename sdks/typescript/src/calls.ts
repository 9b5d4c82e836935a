/** Service calls. */

import { read, readNothing } from "./core/answers.js";
import { ask, remove, type WaitOptions, waitFor } from "./core/flows.js";
import { uuid7 } from "./core/ids.js";
import type { Call, CallOptions, Session } from "./core/session.js";
import { encodeRotateTenantSecret, encodeSubmitServiceCall } from "./generated/codecs.js";
import type {
  RequestSpec,
  RotatedTenantSecret,
  RotateTenantSecret,
  ServiceCall,
  ServiceCallStatus,
  ServiceCallSummary,
  ServiceCallTrace,
  SubmitServiceCall,
  SubmittedServiceCall,
} from "./generated/models.js";
import type { OperationName } from "./generated/operations.js";
import { Pages } from "./pages.js";
import { encodeInstant, type InstantLike } from "./values.js";

/** The id of a new tenant, a UUID of version 7. Store it: the tenant's calls are found by it alone. */
export function newTenantId(): string {
  return uuid7(Date.now());
}

/** A service call to submit: its request, and when. */
export type NewServiceCall = Omit<SubmitServiceCall, "requestSpec"> & RequestSpec;

/** Which service calls to list; `limit` is the size of a page. */
export interface ServiceCallFilter {
  readonly status?: ServiceCallStatus | readonly ServiceCallStatus[] | undefined;
  readonly tag?: string | readonly string[] | undefined;
  readonly name?: string | undefined;
  readonly correlationId?: string | undefined;
  readonly from?: InstantLike | undefined;
  readonly to?: InstantLike | undefined;
  readonly limit?: number | undefined;
}

/** How the secret that signs a tenant's calls is replaced. */
export type SecretRotation = Omit<RotateTenantSecret, "tenantId">;

/** The service calls of a tenant: requests that the server sends, and whose answers it keeps. */
export class Calls {
  /** Made by `client.calls(tenantId)`. */
  constructor(
    private readonly session: Session,
    private readonly tenantId: string,
  ) {}

  /**
   * Submits a call. Its id, a UUID of version 7, is made here unless you give one, so that a lost answer never submits it
   * twice.
   */
  async submit(call: NewServiceCall, options?: CallOptions): Promise<SubmittedServiceCall> {
    const { method, url, headers, body, retryPolicy, credential, ...rest } = call;
    const spec = { method, url, headers, body, retryPolicy, credential };
    const serviceCallId = call.serviceCallId ?? uuid7(this.session.clock.nowMs());
    const sent = encodeSubmitServiceCall({ ...rest, serviceCallId, requestSpec: spec });
    const path = { tenantId: this.tenantId };
    return ask(this.session, "SubmittedServiceCall", "submitServiceCall", sent, options, { path });
  }

  /** The call with its executions. ServiceCallNotFound: there is none. */
  async get(serviceCallId: string, options?: CallOptions): Promise<ServiceCall> {
    const reply = await this.session.perform(this.of("getServiceCall", serviceCallId), this.session.limits(options));
    return read("ServiceCall", reply);
  }

  /** Deletes a call that has not started. ServiceCallNotScheduled: it has. */
  async delete(serviceCallId: string, options?: CallOptions): Promise<void> {
    await remove(
      this.session,
      this.of("deleteServiceCall", serviceCallId),
      this.of("getServiceCall", serviceCallId),
      () => false,
      this.session.limits(options),
    );
  }

  /** Adds a tag. */
  async tag(serviceCallId: string, tag: string, options?: CallOptions): Promise<void> {
    const call = this.of("tagServiceCall", serviceCallId, { tag });
    readNothing(await this.session.perform(call, this.session.limits(options)));
  }

  /** Removes a tag. */
  async untag(serviceCallId: string, tag: string, options?: CallOptions): Promise<void> {
    const call = this.of("untagServiceCall", serviceCallId, { tag });
    readNothing(await this.session.perform(call, this.session.limits(options)));
  }

  /**
   * Makes another attempt of a call that has failed, under the same webhook-id. ServiceCallNotFailed: it has not. A lost answer
   * is not followed by a retry: TransportError with `maybeDone`.
   */
  async retry(serviceCallId: string, options?: CallOptions): Promise<void> {
    const call = { ...this.of("retryServiceCall", serviceCallId), unsafe: true };
    readNothing(await this.session.perform(call, this.session.limits(options)));
  }

  /** What happened to the call, message by message. */
  async trace(serviceCallId: string, options?: CallOptions): Promise<ServiceCallTrace> {
    const reply = await this.session.perform(this.of("traceServiceCall", serviceCallId), this.session.limits(options));
    return read("ServiceCallTrace", reply);
  }

  /**
   * Signs the tenant's calls with a new secret, and during `grace` with the former one, too. Only this answer shows the secret.
   * A lost answer is not followed by a retry: TransportError with `maybeDone`.
   */
  async rotateSecret(rotation: SecretRotation = {}, options?: CallOptions): Promise<RotatedTenantSecret> {
    const sent = encodeRotateTenantSecret({ ...rotation, tenantId: this.tenantId });
    return ask(this.session, "RotatedTenantSecret", "rotateTenantSecret", sent, options, { unsafe: true });
  }

  /** Resolves to the call once it has succeeded or failed. WaitTimeout: that took longer than `timeoutMs`. */
  async wait(serviceCallId: string, options: WaitOptions = {}): Promise<ServiceCall> {
    return waitFor(
      this.session,
      this.of("getServiceCall", serviceCallId),
      (reply) => read("ServiceCall", reply),
      (call) =>
        call.status === "Succeeded" || call.status === "Failed" ? undefined : (call.nextAttemptAt ?? call.dueAt),
      `service call ${serviceCallId}`,
      options,
    );
  }

  /** All calls that match, newest first. */
  list(filter: ServiceCallFilter = {}, options?: CallOptions): Pages<ServiceCallSummary> {
    const { from, to, limit } = filter;
    const query = {
      ...filter,
      from: from === undefined ? undefined : encodeInstant(from, "from"),
      to: to === undefined ? undefined : encodeInstant(to, "to"),
      limit: limit === undefined ? undefined : String(limit),
    };
    const path = { tenantId: this.tenantId };
    return new Pages(async (cursor) => {
      const call: Call = { operation: "listServiceCalls", path, query: { ...query, cursor } };
      const reply = await this.session.perform(call, this.session.limits(options));
      const page = read("ServiceCallPage", reply);
      return { elements: page.serviceCalls, next: page.nextCursor };
    });
  }

  private of(operation: OperationName, serviceCallId: string, more: Record<string, string> = {}): Call {
    return { operation, path: { tenantId: this.tenantId, serviceCallId, ...more } };
  }
}

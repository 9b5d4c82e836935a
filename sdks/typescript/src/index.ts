/**
 * Client for Tocsin, the durable timer service.
 *
 *     import { Client } from "tocsin-client";
 *
 *     const client = new Client("http://127.0.0.1:8080");
 *     await client.timers.create({ namespace: "orders", id: "order-17", callbackUrl, delay: "24h", payload: { order: 17 } });
 *
 * `tocsin-client/receiver` verifies callbacks and answers them, `tocsin-client/errors` has all errors, and
 * `tocsin-client/testing` starts a server for your tests.
 */

export { Batcher, type BatcherOptions } from "./batcher.js";
export { Calendars } from "./calendars.js";
export { Calls, type NewServiceCall, newTenantId, type SecretRotation, type ServiceCallFilter } from "./calls.js";
export { Client } from "./client.js";
export type { Created, ItemResult, NotCreated } from "./core/batches.js";
export type { WaitOptions } from "./core/flows.js";
export type { CallOptions, ClientOptions } from "./core/session.js";
export type { Fetch } from "./core/transport.js";
export type { OnTry, Try } from "./core/tries.js";
export { Destinations } from "./destinations.js";
export { ApiError, InvalidArgument, TocsinError, TransportError } from "./error-bases.js";
export { type FailureFilter, Failures } from "./failures.js";
export { Flows } from "./flows.js";
export type * from "./generated/models.js";
export { Jobs } from "./jobs.js";
export { Audit, type AuditFilter, Keys } from "./keys.js";
export type { Logger } from "./logger.js";
export { Monitors } from "./monitors.js";
export { ClusterView, Namespaces } from "./namespaces.js";
export { type Page, Pages } from "./pages.js";
export { Schedules } from "./schedules.js";
export { type TimerFilter, Timers } from "./timers.js";
export {
  addDuration,
  type DurationLike,
  type DurationParts,
  type Instant,
  type InstantLike,
  type Open,
  toDate,
  toInstant,
} from "./values.js";
export { VERSION } from "./version.js";

/**
 * Receives callbacks: verifies them, gives your handler a `Firing`, and sends its answer.
 *
 *     import { done, Receiver } from "tocsin-client/receiver";
 *
 *     const receiver = new Receiver({ secrets: () => process.env.TOCSIN_SECRET });
 *     export const POST = receiver.fetch(async (firing) => done());   // or receiver.express(…), receiver.fastify(…)
 *
 * `Dedup` does the work of a firing once, however often its callback arrives.
 */

export { Answer, done, fail, rescheduleAt, retry } from "./answers.js";
export { Batch } from "./batch.js";
export {
  type Database,
  type PgClient,
  type PgPool,
  postgres,
  type Query,
  type QueryResult,
  type SqliteDatabase,
  type SqliteStatement,
  type SqlValue,
  sqlite,
} from "./databases.js";
export { Dedup, type DedupOptions } from "./dedup.js";
export type { FastifyPlugin, FastifyScope } from "./fastify.js";
export type { FetchHandler } from "./fetch.js";
export type { Firing } from "./firing.js";
export type { NodeHandler, NodeRequest, NodeResponse } from "./node.js";
export { type Handler, type HeadersLike, Receiver, type ReceiverOptions, type Secrets } from "./receiver.js";
export { signBody } from "./signatures.js";

/** Uses the client's types as a program does: `test_typescript_package.py` compiles it, and what it expects of errors. */

import { Client, type CreateTimer, type ItemResult, type Timer, toDate } from "tocsin-client";
import { ApiError, Conflict, TimerNotPending } from "tocsin-client/errors";
import { type Database, Dedup, done, type Firing, Receiver, rescheduleAt, sqlite } from "tocsin-client/receiver";

interface Order {
  order: number;
}

const client = new Client("http://127.0.0.1:8080", {
  key: "k",
  retries: 0,
  onRequest: (headers) => headers.set("a", "b"),
});
const order: Order = { order: 17 };
const wanted: CreateTimer = { namespace: "n", id: "t", callbackUrl: "http://x/", delay: { hours: 1 }, payload: order };

export async function use(signal: AbortSignal): Promise<Date> {
  const timer: Timer = await client.timers.create({ ...wanted, tags: undefined }, { signal });
  await client.timers.update({ namespace: "n", timerId: "t", retryPolicy: null, executeAt: new Date() });
  // @ts-expect-error: a timer's tags can't be removed by null
  await client.timers.update({ namespace: "n", timerId: "t", tags: null });
  // @ts-expect-error: exactly these statuses can be asked for
  client.timers.list({ namespace: "n", status: "done" });
  const isNew: boolean = timer.status === "a status of a later server";
  for await (const each of client.schedules.list({ namespace: "n" })) {
    const next: string | undefined = each.nextInstants?.[0];
    console.log(next, isNew);
  }
  // @ts-expect-error: a payload that arrives is unknown
  timer.payload.order;
  const results: ItemResult[] = await client.timers.createMany([wanted]);
  const [first] = results;
  if (first?.error === undefined && first !== undefined) {
    console.log(first.timer.id, first.existing);
  } else if (first?.error instanceof ApiError) {
    const status: number = first.error.status;
    console.log(status, new TimerNotPending("", { status: 409, code: "" }) instanceof Conflict);
  }
  return toDate(timer.executeAt);
}

declare const database: Database<{ insert(order: number): Promise<void> }>;
declare const connection: Parameters<typeof sqlite>[0];
const dedup = new Dedup(database);
const receiver = new Receiver({ secrets: ["a", "b"], tolerance: "1m" });

export const POST: (request: Request) => Promise<Response> = receiver.fetch<Order>(async (firing: Firing<Order>) =>
  dedup.once(firing, async (tx) => {
    await tx.insert(firing.payload.order);
    return rescheduleAt(new Date(), firing.payload);
  }),
);
// @ts-expect-error: a handler returns an answer
receiver.fetch(async () => undefined);
export const unsigned = new Receiver({ unsigned: true }).handle({ "webhook-id": ["a"] }, new Uint8Array(), () =>
  done(),
);
export const files = new Dedup(sqlite(connection), { table: "a.b" });

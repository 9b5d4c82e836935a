import assert from "node:assert/strict";
import { test } from "node:test";
import { context, ROOT_CONTEXT, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { Client } from "../dist/index.js";
import { answering, refusal, TIMER } from "./fakes.mjs";

test("every try has the span of its call", async (t) => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  t.after(() => context.disable());
  const propagator = new W3CTraceContextPropagator();
  const setter = { set: (headers, name, value) => headers.set(name, value) };
  const created = ({ body }) => [200, { results: body.timers.map(() => ({ timer: TIMER })) }];
  const server = answering(refusal("NOT_READY", 503), refusal("NOT_READY", 503), [200, TIMER], created);
  const client = new Client("http://tocsin", {
    fetch: server.fetch,
    logger: {},
    onRequest: (headers) => propagator.inject(context.active(), headers, setter),
  });
  const within = (spanId, work) => {
    const span = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId, traceFlags: 1 };
    return context.with(trace.setSpanContext(ROOT_CONTEXT, span), work);
  };
  await within("b7ad6b7169203331", () => client.timers.get({ namespace: "n", timerId: "t" }));
  const timers = Array.from({ length: 1_001 }, (_, n) => ({
    namespace: "n",
    id: `${n}`,
    callbackUrl: "http://x/",
    delay: "1h",
  }));
  await within("00f067aa0ba902b7", () => client.timers.createMany(timers));
  assert.deepEqual(
    server.sent.map(({ headers }) => headers.get("traceparent").split("-")[2]),
    ["b7ad6b7169203331", "b7ad6b7169203331", "b7ad6b7169203331", "00f067aa0ba902b7", "00f067aa0ba902b7"],
  );
});

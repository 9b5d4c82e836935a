// Uses the generated client: `node drive.js <server> <key> <callback URL>`. Throws where it isn't as described.
import createClient from "openapi-fetch";
import type { components, paths } from "./tocsin.js";

declare const process: { argv: string[] };

type Schemas = components["schemas"];

const [, , server = "", key = "", callbackUrl = ""] = process.argv;
const client = createClient<paths>({ baseUrl: server, headers: { authorization: `Bearer ${key}` } });

function expect(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

const retryPolicy: Schemas["RetryPolicy"] = { maxAttempts: 7, initialInterval: "7s" };
const kept: Schemas["CreateTimer"] = {
  namespace: "default",
  id: "typescript-kept",
  callbackUrl,
  delay: "24h",
  payload: { order: 17 },
  method: "PUT",
  headers: { "x-shop": "eu" },
  retryPolicy,
  callbackTimeoutSeconds: 33.5,
  tags: ["before"],
};
const created = await client.POST("/api/v1/timers/create", { body: kept });
expect(created.data !== undefined, `create: ${JSON.stringify(created.error)}`);

const change: Schemas["UpdateTimer"] = { namespace: "default", timerId: "typescript-kept", tags: ["after"] };
const changed = await client.POST("/api/v1/timers/update", { body: change });
expect(changed.data?.status === "pending", `update: ${JSON.stringify(changed.error)}`);

const listed = await client.POST("/api/v1/timers/list", {
  body: { namespace: "default", status: ["pending"], tags: ["after"], idPrefix: "typescript-" },
});
expect(listed.data?.timers.map((timer) => timer.id).join() === "typescript-kept", "list");

const namespaces = await client.POST("/api/v1/namespaces/list");
expect(namespaces.data?.namespaces.some((namespace) => namespace.name === "default") === true, "namespaces");

const missed = await client.POST("/api/v1/timers/get", {
  body: { namespace: "default", timerId: "typescript-nobody" },
});
const code: Schemas["ErrorCode"] = "TIMER_NOT_FOUND";
expect(missed.response.status === 404 && missed.error?.error === code, "get of a timer that isn't there");

const fired = await client.POST("/api/v1/timers/create", {
  body: { namespace: "default", id: "typescript-fired", callbackUrl, delay: "50ms", payload: { by: "typescript" } },
});
expect(fired.data !== undefined, `create: ${JSON.stringify(fired.error)}`);

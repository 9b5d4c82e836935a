/** A program that is compiled to CommonJS: it runs with the package's modules, whichever copy of them `require` gives. */

import { Client, InvalidArgument, type Timer } from "tocsin-client";
import { Conflict, TimerNotPending } from "tocsin-client/errors";
import { done, fail, Receiver } from "tocsin-client/receiver";
import { firing, sign } from "tocsin-client/testing";

const SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

async function run(): Promise<void> {
  const receiver = new Receiver({ secrets: SECRET });
  const hook = receiver.fetch<{ n: number }>(({ payload }) => (payload.n === 1 ? done() : fail("another payload")));
  const request = new Request("http://localhost/", await sign(firing({ payload: { n: 1 } }), SECRET));
  const answer: unknown = await (await hook(request)).json();
  const error: unknown = new TimerNotPending("", { status: 409, code: "" });
  const timers = new Client("http://127.0.0.1:8080", { fetch: async () => new Response("{}") }).timers;
  const refused: unknown = await timers
    .create({ namespace: "n", id: "t", callbackUrl: "http://x/", payload: Number.NaN })
    .then((timer: Timer) => timer.id)
    .catch((reason: unknown) => reason);
  console.log(JSON.stringify([answer, error instanceof Conflict, refused instanceof InvalidArgument]));
}

void run();

/** Servers in the style of fetch. */

import { type Answer, tooLong } from "./answers.js";
import { announcesTooMuch, BodyBuffer } from "./bodies.js";
import type { Handler, Receiver } from "./receiver.js";

/** A function of a Request, as Next.js, Hono, Workers, Deno and Bun call it. */
export type FetchHandler = (request: Request) => Promise<Response>;

/** The function. It rejects with TypeError if something has read the body before. */
export function fetchHandler<Payload>(receiver: Receiver, handler: Handler<Payload>): FetchHandler {
  return async (request) => {
    if (request.bodyUsed) {
      throw new TypeError("request: its body was read before; pass the request on before anything reads it");
    }
    const body = await bodyOf(request);
    return responseOf(body === undefined ? tooLong() : await receiver.handle(request.headers, body, handler));
  };
}

function responseOf(answer: Answer): Response {
  return new Response(answer.body || null, { status: answer.status, headers: { ...answer.headers } });
}

/** The whole body; undefined: it is too long, and the rest is not read. */
async function bodyOf(request: Request): Promise<Uint8Array | undefined> {
  if (announcesTooMuch(request.headers.get("content-length"))) {
    return undefined;
  }
  const body = new BodyBuffer();
  // Not every platform's streams can be iterated over.
  const reader = request.body?.getReader();
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
    if (!body.add(part.value)) {
      await reader?.cancel();
      break;
    }
  }
  return body.whole();
}

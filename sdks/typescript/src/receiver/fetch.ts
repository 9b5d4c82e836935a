/** Servers in the style of fetch. */

import type { Answer } from "./answers.js";
import { joined } from "./bodies.js";
import type { Handler, Receiver } from "./receiver.js";

/** A function of a Request, as Next.js, Hono, Workers, Deno and Bun call it. */
export type FetchHandler = (request: Request) => Promise<Response>;

/** The function. It rejects with TypeError if something has read the body before. */
export function fetchHandler<Payload>(receiver: Receiver, handler: Handler<Payload>): FetchHandler {
  return async (request) => {
    if (request.bodyUsed) {
      throw new TypeError("request: its body was read before; pass the request on before anything reads it");
    }
    const body = request.body === null ? new Uint8Array() : await joined(chunksOf(request.body));
    return responseOf(await receiver.handle(request.headers, body, handler));
  };
}

function responseOf(answer: Answer): Response {
  return new Response(answer.body || null, { status: answer.status, headers: { ...answer.headers } });
}

/** Not every platform's streams can be iterated over. */
async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    yield part.value;
  }
}

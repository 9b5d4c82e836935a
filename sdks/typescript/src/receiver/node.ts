/** Express, and node:http. */

import { tooLong } from "./answers.js";
import { announcesTooMuch, BodyBuffer } from "./bodies.js";
import type { Handler, Receiver } from "./receiver.js";

/** What is used of a request of `node:http`, which Express' requests are. */
export interface NodeRequest extends AsyncIterable<Uint8Array> {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly readableDidRead?: boolean;
}

/** What is used of a response of `node:http`. */
export interface NodeResponse {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(body: string): unknown;
}

/** A function of request and response, as Express and `node:http` call it. */
export type NodeHandler = (
  request: NodeRequest,
  response: NodeResponse,
  next?: (error: unknown) => void,
) => Promise<void>;

/** The function. A TypeError goes to `next`, or rejects, if a parser has read the body. */
export function nodeHandler<Payload>(receiver: Receiver, handler: Handler<Payload>): NodeHandler {
  return async (request, response, next) => {
    try {
      const body = await rawBody(request);
      const answer = body === undefined ? tooLong() : await receiver.handle(request.headers, body, handler);
      response.statusCode = answer.status;
      for (const [name, value] of Object.entries(answer.headers)) {
        response.setHeader(name, value);
      }
      response.end(answer.body);
    } catch (error) {
      if (next === undefined) {
        throw error;
      }
      next(error);
    }
  };
}

/** The whole body; undefined: it is too long. */
async function rawBody(request: NodeRequest): Promise<Uint8Array | undefined> {
  const parsed: unknown = "body" in request ? request.body : undefined;
  if (parsed instanceof Uint8Array) {
    return parsed; // of express.raw()
  }
  if (request.readableDidRead === true) {
    throw new TypeError(
      "request: a parser has read its body; mount the receiver before express.json(), or use express.raw() for its path",
    );
  }
  if (announcesTooMuch(request.headers["content-length"])) {
    return undefined; // Node.js itself drops a body of which nothing was read
  }
  const body = new BodyBuffer();
  for await (const part of request) {
    body.add(part); // what is too long is read and dropped: the sender reads no answer before it has sent all
  }
  return body.whole();
}

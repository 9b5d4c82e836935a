/** Express, and node:http. */

import { joined } from "./bodies.js";
import type { Handler, HeadersLike, Receiver } from "./receiver.js";

/** What is used of a request of `node:http`, which Express' requests are. */
export interface NodeRequest extends AsyncIterable<Uint8Array> {
  readonly headers: HeadersLike;
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
      const answer = await receiver.handle(request.headers, await rawBody(request), handler);
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

async function rawBody(request: NodeRequest): Promise<Uint8Array> {
  const parsed: unknown = "body" in request ? request.body : undefined;
  if (parsed instanceof Uint8Array) {
    return parsed; // of express.raw()
  }
  if (request.readableDidRead === true) {
    throw new TypeError(
      "request: a parser has read its body; mount the receiver before express.json(), or use express.raw() for its path",
    );
  }
  return joined(request);
}

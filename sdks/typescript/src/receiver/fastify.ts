/** Fastify. */

import { BODY_BYTES_MAX } from "./bodies.js";
import type { Handler, HeadersLike, Receiver } from "./receiver.js";

/** What is used of a Fastify reply. */
interface Reply {
  code(status: number): unknown;
  headers(values: Record<string, string>): unknown;
  send(body: string): unknown;
}

/** What is used of a Fastify request. */
interface Request {
  readonly headers: HeadersLike;
  readonly body: unknown;
}

type Parsed = (error: Error | null, body?: Uint8Array) => void;

/** What is used of a Fastify instance. */
export interface FastifyScope {
  removeAllContentTypeParsers(): unknown;
  addContentTypeParser(
    contentType: string,
    options: { parseAs: "buffer"; bodyLimit: number },
    parser: (request: never, body: Uint8Array<ArrayBuffer> & never, parsed: Parsed) => void,
  ): unknown;
  route(route: {
    method: string[];
    url: string;
    handler: (request: Request, reply: Reply) => Promise<unknown>;
  }): unknown;
}

/** A plugin for `app.register`. */
export type FastifyPlugin = (scope: FastifyScope) => Promise<void>;

/** HEAD comes with GET. */
const METHODS = ["POST", "GET", "PUT", "PATCH", "DELETE"];

/** The plugin. Its parsers are its own: those of the application stay as they are. */
export function fastifyPlugin<Payload>(receiver: Receiver, url: string, handler: Handler<Payload>): FastifyPlugin {
  return async (scope) => {
    scope.removeAllContentTypeParsers();
    const asBytes = { parseAs: "buffer", bodyLimit: BODY_BYTES_MAX } as const;
    scope.addContentTypeParser("*", asBytes, (_request, body, parsed) => parsed(null, body));
    scope.route({
      method: METHODS,
      url,
      handler: async (request, reply) => {
        const body = request.body instanceof Uint8Array ? request.body : new Uint8Array();
        const answer = await receiver.handle(request.headers, body, handler);
        reply.code(answer.status);
        reply.headers({ ...answer.headers });
        return reply.send(answer.body);
      },
    });
  };
}

/** The classes that all errors of this package derive from. */

import type { BadField } from "./generated/models.js";

/** What an answer reports of an error. */
export interface ApiErrorDetails {
  readonly status: number;
  readonly code: string;
  readonly fields?: readonly BadField[] | undefined;
  readonly correlationId?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
}

/** A class of errors that answers become. */
export type ApiErrorClass = new (message: string, details: ApiErrorDetails) => ApiError;

/** Base of everything that this package throws on its own account. */
export class TocsinError extends Error {
  static {
    TocsinError.prototype.name = "TocsinError";
  }
}

/** An argument can't be sent, so nothing was: no JSON, no instant, no URL, no key. The message names it. */
export class InvalidArgument extends TocsinError {
  static {
    InvalidArgument.prototype.name = "InvalidArgument";
  }
}

/** No answer arrived. */
export class TransportError extends TocsinError {
  static {
    TransportError.prototype.name = "TransportError";
  }

  /** Whether the server may have received and executed the request; otherwise it was never sent completely. */
  readonly maybeDone: boolean;

  constructor(message: string, details: { readonly maybeDone: boolean; readonly cause?: unknown }) {
    super(message, details.cause === undefined ? {} : { cause: details.cause });
    this.maybeDone = details.maybeDone;
  }
}

/** The call's time was over before an answer arrived. */
export class DeadlineExceeded extends TransportError {
  static {
    DeadlineExceeded.prototype.name = "DeadlineExceeded";
  }
}

/** `wait` reached its timeout; what it waited for goes on. */
export class WaitTimeout extends TocsinError {
  static {
    WaitTimeout.prototype.name = "WaitTimeout";
  }
}

/** A timer was added to a batcher that is closed. */
export class BatcherClosed extends TocsinError {
  static {
    BatcherClosed.prototype.name = "BatcherClosed";
  }
}

/** A timer was added to a batcher that has as many waiting as it takes, and that was made with `block: false`. */
export class BatcherFull extends TocsinError {
  static {
    BatcherFull.prototype.name = "BatcherFull";
  }
}

/** The server refused the request, or failed. `code` is stable: compare it, or check for the class of the code. */
export class ApiError extends TocsinError {
  static {
    ApiError.prototype.name = "ApiError";
  }

  /** The HTTP status. */
  readonly status: number;
  /** The code, such as TIMER_NOT_FOUND; empty if the answer was not Tocsin's, as from a proxy. */
  readonly code: string;
  /** Each invalid field. */
  readonly fields: readonly BadField[];
  /** Identifies the request in the server's log. */
  readonly correlationId: string | undefined;
  /** From `Retry-After`. */
  readonly retryAfterSeconds: number | undefined;
  /** What the server wrote, without code and status. */
  readonly reason: string;

  constructor(reason: string, details: ApiErrorDetails) {
    const known = `${details.code || "HTTP"} (${details.status}): ${reason}`;
    super(details.correlationId ? `${known} [correlation id ${details.correlationId}]` : known);
    this.reason = reason;
    this.status = details.status;
    this.code = details.code;
    this.fields = details.fields ?? [];
    this.correlationId = details.correlationId;
    this.retryAfterSeconds = details.retryAfterSeconds;
  }
}

/** The request is wrong; repeated as it is, it will be refused again. `fields` names what to correct. */
export class InvalidInput extends ApiError {
  static {
    InvalidInput.prototype.name = "InvalidInput";
  }
}

/** No API key, or one that is unknown, revoked or expired. */
export class Unauthenticated extends ApiError {
  static {
    Unauthenticated.prototype.name = "Unauthenticated";
  }
}

/** The API key does not allow this. */
export class Forbidden extends ApiError {
  static {
    Forbidden.prototype.name = "Forbidden";
  }
}

/** There is no such object. */
export class NotFound extends ApiError {
  static {
    NotFound.prototype.name = "NotFound";
  }
}

/** The object's state does not allow this. */
export class Conflict extends ApiError {
  static {
    Conflict.prototype.name = "Conflict";
  }
}

/** A limit was reached, and nothing was accepted. Try again after `retryAfterSeconds`. */
export class Overloaded extends ApiError {
  static {
    Overloaded.prototype.name = "Overloaded";
  }
}

/** The server can't answer now. A write may have been executed. */
export class Unavailable extends ApiError {
  static {
    Unavailable.prototype.name = "Unavailable";
  }
}

/** The server failed. Report the `correlationId` to its operator. */
export class ServerError extends ApiError {
  static {
    ServerError.prototype.name = "ServerError";
  }
}

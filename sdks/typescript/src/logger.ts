/** Where what no caller sees is reported. */

/** `console` is one, and so are the loggers of most frameworks. What it lacks is not reported. */
export interface Logger {
  /** Gets a line for each try of a call. */
  debug?(message: string): void;
  /** Gets what somebody should look at, such as that owner routing is off, or that a callback's signature is wrong. */
  warn?(message: string): void;
  /** Gets the failures of handlers; a logger without it gets them as warnings. */
  error?(message: string): void;
}

/** Of those who give none: no line for each try. */
export const DEFAULT_LOGGER: Logger = {
  warn: (message) => console.warn(message),
  error: (message) => console.error(message),
};

/** What happened, as text with its stack. */
export function explained(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

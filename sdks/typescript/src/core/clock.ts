/** Time and chance, which tests replace. */

/** What the client decides with. */
export interface Clock {
  /** Milliseconds of a clock that never steps. */
  monotonicMs(): number;
  /** Milliseconds since 1970. */
  nowMs(): number;
  /** From 0 to 1. */
  random(): number;
  /** Resolves after the time; rejects with the signal's reason if it is aborted before. */
  sleep(ms: number, signal: AbortSignal | undefined): Promise<void>;
}

/** The platform's. */
export const CLOCK: Clock = {
  monotonicMs: () => performance.now(),
  nowMs: () => Date.now(),
  random: () => Math.random(),
  sleep(ms, signal) {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const slept = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    });
    return abortable(slept, signal).finally(() => clearTimeout(timer));
  },
};

/** The promise, or a rejection with the signal's reason as soon as it is aborted. */
export function abortable<Value>(promise: Promise<Value>, signal: AbortSignal | undefined): Promise<Value> {
  if (signal === undefined) {
    return promise;
  }
  return new Promise<Value>((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) {
      abort();
      return;
    }
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

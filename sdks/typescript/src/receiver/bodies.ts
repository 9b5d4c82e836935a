/** Bodies that arrive in parts. */

/** A body that is longer is refused. */
export const BODY_BYTES_MAX = 1024 * 1024;
const FIRST_BYTES = 4 * 1024;

/** Whether the header announces more than a callback can have, so that nothing of it need be read. */
export function announcesTooMuch(contentLength: unknown): boolean {
  return Number(contentLength) > BODY_BYTES_MAX;
}

/** A body in one buffer that grows, so that a million small parts take no more memory than one. */
export class BodyBuffer {
  private bytes = new Uint8Array(FIRST_BYTES);
  private length = 0;

  /** Appends the part. False: the body is too long, and nothing more of it is kept. */
  add(part: Uint8Array): boolean {
    const length = this.length + part.length;
    if (length > BODY_BYTES_MAX) {
      this.length = Number.POSITIVE_INFINITY;
      return false;
    }
    if (length > this.bytes.length) {
      const grown = new Uint8Array(Math.min(Math.max(length, this.bytes.length * 2), BODY_BYTES_MAX));
      grown.set(this.bytes.subarray(0, this.length));
      this.bytes = grown;
    }
    this.bytes.set(part, this.length);
    this.length = length;
    return true;
  }

  /** The whole body; undefined: it is too long. */
  whole(): Uint8Array | undefined {
    return this.length > BODY_BYTES_MAX ? undefined : this.bytes.slice(0, this.length);
  }
}

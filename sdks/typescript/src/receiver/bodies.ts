/** Bodies that arrive in parts. */

/** A body that is longer is refused. */
export const BODY_BYTES_MAX = 1024 * 1024;

/** The whole body. What is longer than the limit is refused, and need not be kept: the rest is read and dropped. */
export async function joined(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const kept: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    if (length <= BODY_BYTES_MAX) {
      kept.push(chunk);
      length += chunk.length;
    }
  }
  const body = new Uint8Array(length);
  let start = 0;
  for (const chunk of kept) {
    body.set(chunk, start);
    start += chunk.length;
  }
  return body;
}

/** Signatures as Standard Webhooks specifies them. */

const HMAC = { name: "HMAC", hash: "SHA-256" } as const;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** During a rotation there are two; a header with more is not the server's. */
const SIGNATURES_MAX = 10;
const UTF8 = new TextEncoder();

/** The key in a secret. TypeError: it is none. */
export async function keyOf(secret: string): Promise<CryptoKey> {
  const bytes = bytesOf(secret.replace(/^whsec_/, ""));
  if (bytes === undefined || bytes.length === 0) {
    throw new TypeError("a signing secret is not valid; it is whsec_ and base64, as `tocsin namespaces` printed it");
  }
  return crypto.subtle.importKey("raw", bytes, HMAC, false, ["sign"]);
}

/** The header `webhook-signature`: a signature for each secret, separated by spaces. TypeError: a secret is none. */
export async function signBody(
  secrets: Iterable<string>,
  webhookId: string,
  timestampSeconds: number,
  body: Uint8Array | string,
): Promise<string> {
  const bytes = typeof body === "string" ? UTF8.encode(body) : body;
  const keys = await Promise.all([...secrets].map(keyOf));
  return (await signaturesOf(keys, webhookId, String(timestampSeconds), bytes)).join(" ");
}

/** The signatures that the header has; undefined: so many that it is not worth a look. */
export function signaturesIn(header: string): readonly string[] | undefined {
  const parts = header.split(" ", SIGNATURES_MAX + 1);
  return parts.length > SIGNATURES_MAX ? undefined : parts.filter((part) => part.startsWith("v1,"));
}

/** Whether one of the given signatures is of one of the keys. Each is compared with each, in constant time. */
export async function isSigned(
  keys: readonly CryptoKey[],
  webhookId: string,
  timestamp: string,
  body: Uint8Array,
  given: readonly string[],
): Promise<boolean> {
  let found = false;
  for (const expected of await signaturesOf(keys, webhookId, timestamp, body)) {
    for (const signature of given) {
      found = isEqual(signature, expected) || found;
    }
  }
  return found;
}

/** A signature with each key. One after the other: the platform copies the content for each. */
async function signaturesOf(
  keys: readonly CryptoKey[],
  webhookId: string,
  timestamp: string,
  body: Uint8Array,
): Promise<string[]> {
  const head = UTF8.encode(`${webhookId}.${timestamp}.`);
  const content = new Uint8Array(head.length + body.length);
  content.set(head);
  content.set(body, head.length);
  const signatures: string[] = [];
  for (const key of keys) {
    const signature = new Uint8Array(await crypto.subtle.sign(HMAC, key, content));
    signatures.push(`v1,${btoa(String.fromCharCode(...signature))}`);
  }
  return signatures;
}

/** Takes the same time wherever the texts differ. Their lengths are no secret. */
function isEqual(given: string, expected: string): boolean {
  if (given.length !== expected.length) {
    return false;
  }
  let difference = 0;
  for (let index = 0; index < expected.length; index++) {
    difference |= given.charCodeAt(index) ^ expected.charCodeAt(index);
  }
  return difference === 0;
}

/** The bytes of base64; undefined: it is none. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  return BASE64.test(base64) ? Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)) : undefined;
}

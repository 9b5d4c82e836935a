/** Signatures as Standard Webhooks specifies them. */

const HMAC = { name: "HMAC", hash: "SHA-256" } as const;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const UTF8 = new TextEncoder();

/** The key in a secret. TypeError: it is none. */
export async function keyOf(secret: string): Promise<CryptoKey> {
  const bytes = bytesOf(secret.replace(/^whsec_/, ""));
  if (bytes === undefined || bytes.length === 0) {
    throw new TypeError("a signing secret is not valid; it is whsec_ and base64, as `tocsin namespaces` printed it");
  }
  return crypto.subtle.importKey("raw", bytes, HMAC, false, ["sign", "verify"]);
}

/** The header `webhook-signature`: a signature for each secret, separated by spaces. TypeError: a secret is none. */
export async function signBody(
  secrets: Iterable<string>,
  webhookId: string,
  timestampSeconds: number,
  body: Uint8Array | string,
): Promise<string> {
  const content = contentOf(webhookId, timestampSeconds, typeof body === "string" ? UTF8.encode(body) : body);
  const signatures = [...secrets].map(async (secret) => {
    const signature = await crypto.subtle.sign(HMAC, await keyOf(secret), content);
    return `v1,${btoa(String.fromCharCode(...new Uint8Array(signature)))}`;
  });
  return (await Promise.all(signatures)).join(" ");
}

/** Whether one of the header's signatures is of one of the keys. Each is compared with each, in constant time. */
export async function isSigned(
  keys: readonly CryptoKey[],
  webhookId: string,
  timestampSeconds: number,
  body: Uint8Array,
  header: string,
): Promise<boolean> {
  const content = contentOf(webhookId, timestampSeconds, body);
  const given = header.split(" ").flatMap((each) => (each.startsWith("v1,") ? (bytesOf(each.slice(3)) ?? []) : []));
  const matches = given.flatMap((signature) => keys.map((key) => crypto.subtle.verify(HMAC, key, signature, content)));
  return (await Promise.all(matches)).includes(true);
}

function contentOf(webhookId: string, timestampSeconds: number, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = UTF8.encode(`${webhookId}.${timestampSeconds}.`);
  const content = new Uint8Array(head.length + body.length);
  content.set(head);
  content.set(body, head.length);
  return content;
}

/** The bytes of base64; undefined: it is none. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  return BASE64.test(base64) ? Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)) : undefined;
}

/** What a client is given to connect with. */

import { InvalidArgument } from "../error-bases.js";

const MEND = "give one such as http://127.0.0.1:8080";
const PORT = /:(\d*)$/;

/** The base of all URLs. InvalidArgument: this is none. */
export function baseUrlOf(url: string): string {
  const fault = faultOfUrl(url);
  if (fault !== undefined) {
    throw new InvalidArgument(`url: ${fault}; ${MEND}`);
  }
  return url.replace(/\/+$/, "");
}

function faultOfUrl(url: unknown): string | undefined {
  if (typeof url !== "string") {
    return "is not text";
  }
  const [, authority = ""] = /^https?:\/\/([^/?#]*)/i.exec(url) ?? [];
  if (authority.includes("@")) {
    return "has a user's name, which is not sent; the API key is the option `key`";
  }
  const shown = url.includes("@") ? "what was given" : `"${url}"`; // never a password
  if (!/^https?:\/\//i.test(url)) {
    return `${shown} is not an http or https URL`;
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are looked for
  if (/[\s\u0000-\u001f\u007f\\]/.test(url)) {
    return `${shown} has a space, a control character or a backslash`;
  }
  if (/[?#]/.test(url)) {
    return `${shown} has a query or a fragment`;
  }
  const port = PORT.exec(authority)?.[1];
  if (port !== undefined && !(Number(port) >= 1 && Number(port) <= 65_535)) {
    return `${shown} has a port that is not between 1 and 65535`;
  }
  return authority !== "" && URL.canParse(url) ? undefined : `${shown} has no valid host`;
}

/** The API key as it is sent. InvalidArgument, whose message does not show it: it can't be one. */
export function keyOf(key: string | undefined): string | undefined {
  if (key === undefined) {
    return undefined;
  }
  const trimmed = typeof key === "string" ? key.trim() : "";
  if (!/^[\x21-\x7e]+$/.test(trimmed)) {
    const fault = trimmed === "" ? "is empty" : "has characters other than visible ASCII";
    throw new InvalidArgument(`key: ${fault}; give the key as \`tocsin keys create\` printed it`);
  }
  return trimmed;
}

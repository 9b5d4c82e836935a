/** UUIDs, and where a timer is stored. */

const UTF8 = new TextEncoder();
/** The namespace of timers' UUIDs: uuid5(DNS, "timers.tocsin.dev"). */
const TIMERS = Uint8Array.from([
  0xa5, 0x18, 0x51, 0x5d, 0x87, 0x9f, 0x54, 0x24, 0x88, 0xaf, 0x63, 0xbe, 0x95, 0x72, 0x23, 0xec,
]);

/** The timer that a request writes. */
export interface Place {
  readonly namespace: string;
  readonly timerId: string;
}

/** The UUID of the timer with this id. */
export function timerUuid(place: Place): string {
  return written(uuid5(place.namespace, place.timerId));
}

/** The UUID of the schedule with this id. */
export function scheduleUuid(place: Place): string {
  return written(uuid5(place.namespace, "schedule", place.timerId));
}

/** The shard that has the timer: the n-th of its namespace's, which follow one another. */
export function shardOf(place: Place, numShards: number, totalShards: number): number {
  const first = new DataView(sha1(UTF8.encode(place.namespace)).buffer).getUint32(0);
  const nth = new DataView(uuid5(place.namespace, place.timerId).buffer).getUint32(0) % numShards;
  return (first + nth) % totalShards;
}

/** A UUID of version 7 (RFC 9562) of that time: 74 of its bits are random. */
export function uuid7(nowMs: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const view = new DataView(bytes.buffer);
  view.setUint16(0, Math.floor(nowMs / 2 ** 32));
  view.setUint32(2, nowMs % 2 ** 32);
  view.setUint8(6, (view.getUint8(6) & 0x0f) | 0x70);
  view.setUint8(8, (view.getUint8(8) & 0x3f) | 0x80);
  return written(bytes);
}

function uuid5(...names: string[]): Uint8Array {
  const name = UTF8.encode(names.join("\0"));
  const content = new Uint8Array(TIMERS.length + name.length);
  content.set(TIMERS);
  content.set(name, TIMERS.length);
  const bytes = sha1(content).slice(0, 16);
  const view = new DataView(bytes.buffer);
  view.setUint8(6, (view.getUint8(6) & 0x0f) | 0x50);
  view.setUint8(8, (view.getUint8(8) & 0x3f) | 0x80);
  return bytes;
}

function written(bytes: Uint8Array): string {
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** SHA-1 (RFC 3174), which decides on places only. WebCrypto has it, too, but as a promise of another thread for each timer. */
function sha1(content: Uint8Array): Uint8Array {
  const padded = new Uint8Array((((content.length + 8) >> 6) + 1) << 6);
  padded.set(content);
  padded[content.length] = 0x80;
  const blocks = new DataView(padded.buffer);
  blocks.setUint32(padded.length - 8, Math.floor(content.length / 2 ** 29));
  blocks.setUint32(padded.length - 4, content.length << 3);
  const state = Uint32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0);
  const words = new Uint32Array(80);
  for (let start = 0; start < padded.length; start += 64) {
    for (let i = 0; i < 80; i++) {
      words[i] =
        i < 16
          ? blocks.getUint32(start + i * 4)
          : rotated(word(words, i - 3) ^ word(words, i - 8) ^ word(words, i - 14) ^ word(words, i - 16), 1);
    }
    mix(state, words);
  }
  const digest = new DataView(new ArrayBuffer(20));
  state.forEach((part, i) => {
    digest.setUint32(i * 4, part);
  });
  return new Uint8Array(digest.buffer);
}

function mix(state: Uint32Array, words: Uint32Array): void {
  let [a = 0, b = 0, c = 0, d = 0, e = 0] = state;
  words.forEach((each, i) => {
    const round =
      i < 20
        ? ((b & c) | (~b & d)) + 0x5a827999
        : i < 40
          ? (b ^ c ^ d) + 0x6ed9eba1
          : i < 60
            ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
            : (b ^ c ^ d) + 0xca62c1d6;
    [a, b, c, d, e] = [(rotated(a, 5) + round + e + each) >>> 0, a, rotated(b, 30), c, d];
  });
  [a, b, c, d, e].forEach((part, i) => {
    state[i] = word(state, i) + part;
  });
}

function word(words: Uint32Array, index: number): number {
  return words[index] ?? 0;
}

function rotated(value: number, bits: number): number {
  return ((value << bits) | (value >>> (32 - bits))) >>> 0;
}

//! One plain create: what is taken of its JSON object, and the texts that are made of it.

use std::ops::Range;

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::instants::{parse_duration, parse_instant, write_instant, INSTANTS};
use crate::json::Scanner;

/// The UUIDv5 name space of all timers, `tocsin.model.ids.TOCSIN_NAMESPACE`.
const TIMERS: [u8; 16] = [
    0xa5, 0x18, 0x51, 0x5d, 0x87, 0x9f, 0x54, 0x24, 0x88, 0xaf, 0x63, 0xbe, 0x95, 0x72, 0x23, 0xec,
];
/// Bytes of a stored hash.
const HASH_BYTES: usize = 16;
/// Characters of an idempotency key.
const KEY_CHARS_MAX: usize = 255;
/// Levels that are read by recursion, whatever the settings accept.
const DEPTH_MAX: usize = 200;

/// What the settings accept, in bytes and microseconds.
pub struct Limits {
    pub payload_bytes_max: usize,
    pub payload_depth_max: usize,
    pub past_max: i64,
    pub ahead_max: i64,
    pub id_chars_max: usize,
    pub url_chars_max: usize,
}

/// A create that may be taken, as places in its text. All strings are printable ASCII without escapes.
#[derive(Default)]
pub struct Fields {
    pub namespace: Range<usize>,
    pub id: Range<usize>,
    pub url: Range<usize>,
    pub payload: Option<Range<usize>>,
    pub key: Option<Range<usize>>,
    pub execute_at: i64,
    /// Whether the request names the instant. Otherwise it names a delay.
    pub at_instant: bool,
}

/// Reads a create at the scanner's place. `None`: it has something that is left to Python.
pub fn read(text: &[u8], scanner: &mut Scanner, now: i64, limits: &Limits) -> Option<Fields> {
    let mut fields = Fields::default();
    let mut known = 0_u8;
    if !scanner.take(b'{') {
        return None;
    }
    loop {
        let name = scanner.plain_string()?;
        if !scanner.take(b':') {
            return None;
        }
        let bit = match &text[name] {
            b"namespace" => {
                fields.namespace = scanner.plain_string()?;
                1
            }
            b"id" | b"timerId" => {
                fields.id = scanner.plain_string()?;
                2
            }
            b"callbackUrl" => {
                fields.url = scanner.plain_string()?;
                4
            }
            b"executeAt" => {
                fields.execute_at = parse_instant(&text[scanner.plain_string()?])?;
                fields.at_instant = true;
                8
            }
            b"delay" => {
                fields.execute_at =
                    now.checked_add(parse_duration(&text[scanner.plain_string()?])?)?;
                8
            }
            b"payload" => {
                fields.payload = Some(scanner.value(limits.payload_depth_max.min(DEPTH_MAX))?);
                16
            }
            b"idempotencyKey" => {
                fields.key = Some(scanner.plain_string()?);
                32
            }
            _ => return None,
        };
        // Twice, or a field beside one that it excludes.
        if known & bit != 0 {
            return None;
        }
        known |= bit;
        if scanner.take(b'}') {
            break;
        }
        if !scanner.take(b',') {
            return None;
        }
    }
    let required = known & 15 == 15;
    (required && is_accepted(text, &fields, now, limits)).then_some(fields)
}

fn is_accepted(text: &[u8], fields: &Fields, now: i64, limits: &Limits) -> bool {
    let (namespace, url) = (&text[fields.namespace.clone()], &text[fields.url.clone()]);
    let earliest = if fields.at_instant {
        now.saturating_sub(limits.past_max)
    } else {
        now
    };
    (1..=255).contains(&namespace.len())
        && namespace
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._:-".contains(byte))
        && (1..=limits.id_chars_max).contains(&fields.id.len())
        && (1..=limits.url_chars_max).contains(&url.len())
        && fields
            .payload
            .as_ref()
            .is_none_or(|payload| payload.len() <= limits.payload_bytes_max)
        && fields
            .key
            .as_ref()
            .is_none_or(|key| is_key(&text[key.clone()]))
        && (earliest..=now.saturating_add(limits.ahead_max)).contains(&fields.execute_at)
        && INSTANTS.contains(&fields.execute_at)
        && INSTANTS.contains(&now)
}

/// Whether the bytes can be an idempotency key.
pub fn is_key(key: &[u8]) -> bool {
    (1..=KEY_CHARS_MAX).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic)
}

/// The timer's UUID.
pub fn uuid(text: &[u8], fields: &Fields) -> [u8; 16] {
    let mut hash = Sha1::new_with_prefix(TIMERS);
    hash.update(&text[fields.namespace.clone()]);
    hash.update(b"\0");
    hash.update(&text[fields.id.clone()]);
    let mut uuid: [u8; 16] = hash.finalize()[..16]
        .try_into()
        .expect("SHA-1 has 20 bytes");
    uuid[6] = uuid[6] & 0x0f | 0x50;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// The hashes, as text, of an idempotency key and of what it covers: `tocsin.model.timer.CreateKey`.
pub fn key_hashes(text: &[u8], fields: &Fields, key: &[u8]) -> [String; 2] {
    let mut covered = Vec::with_capacity(512);
    covered.extend_from_slice(key);
    covered.extend_from_slice(b"\0{\"namespace\":\"");
    covered.extend_from_slice(&text[fields.namespace.clone()]);
    covered.extend_from_slice(b"\",\"callbackUrl\":\"");
    covered.extend_from_slice(&text[fields.url.clone()]);
    covered.extend_from_slice(b"\",\"id\":\"");
    covered.extend_from_slice(&text[fields.id.clone()]);
    covered.push(b'"');
    if fields.at_instant {
        covered.extend_from_slice(b",\"executeAt\":\"");
        covered.extend_from_slice(fields.execute_at.to_string().as_bytes());
        covered.push(b'"');
    }
    if let Some(payload) = &fields.payload {
        covered.extend_from_slice(b",\"payload\":");
        covered.extend_from_slice(&text[payload.clone()]);
    }
    covered.push(b'}');
    [hash(key), hash(&covered)]
}

fn hash(data: &[u8]) -> String {
    let mut shown = String::with_capacity(2 * HASH_BYTES);
    for byte in &Sha256::digest(data)[..HASH_BYTES] {
        for digit in [byte >> 4, byte & 15] {
            shown.push(char::from_digit(digit.into(), 16).expect("a digit is below 16"));
        }
    }
    shown
}

/// What the stored record has beside the request's fields.
pub struct Recorded<'a> {
    pub now: i64,
    pub traceparent: Option<&'a str>,
    pub firing: &'a str,
    pub keys: Option<&'a [String; 2]>,
}

/// The stored record: `tocsin.model.timer.encode_record`.
pub fn record(text: &[u8], fields: &Fields, with: &Recorded) -> Vec<u8> {
    let payload = fields.payload.as_ref().map_or(0, Range::len);
    let mut out = Vec::with_capacity(
        384 + fields.namespace.len() + fields.id.len() + fields.url.len() + payload,
    );
    out.extend_from_slice(b"{\"v\":1");
    member("namespace", &text[fields.namespace.clone()], &mut out);
    member("id", &text[fields.id.clone()], &mut out);
    number("execute_at", fields.execute_at, &mut out);
    member("url", &text[fields.url.clone()], &mut out);
    number("created_at", with.now, &mut out);
    number("updated_at", with.now, &mut out);
    if let Some(payload) = &fields.payload {
        out.extend_from_slice(b",\"payload\":");
        out.extend_from_slice(&text[payload.clone()]);
    }
    out.extend_from_slice(b",\"timeout_us\":10000000");
    if let Some(traceparent) = with.traceparent {
        member("traceparent", traceparent.as_bytes(), &mut out);
    }
    if !with.firing.is_empty() {
        member("firing", with.firing.as_bytes(), &mut out);
    }
    if let Some([key, body]) = with.keys {
        out.extend_from_slice(b",\"keys\":[[\"");
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(b"\",\"");
        out.extend_from_slice(body.as_bytes());
        out.extend_from_slice(b"\"]]");
    }
    out.push(b'}');
    out
}

/// The answer: `tocsin.web.http.convert.timer_answer`, encoded. `shown_url` has no secrets.
pub fn answer(
    text: &[u8],
    fields: &Fields,
    uuid: &[u8; 16],
    shard: u32,
    now: i64,
    shown_url: &str,
) -> Vec<u8> {
    let payload = fields.payload.as_ref().map_or(4, Range::len);
    let mut out = Vec::with_capacity(
        576 + fields.namespace.len() + fields.id.len() + shown_url.len() + payload,
    );
    out.extend_from_slice(b"{\"namespace\":\"");
    out.extend_from_slice(&text[fields.namespace.clone()]);
    out.push(b'"');
    member("id", &text[fields.id.clone()], &mut out);
    out.extend_from_slice(b",\"timerUuid\":\"");
    for (place, byte) in uuid.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
    }
    out.push(b'"');
    number("shardId", i64::from(shard), &mut out);
    out.extend_from_slice(b",\"status\":\"pending\",\"executeAt\":\"");
    let begin = out.len();
    write_instant(fields.execute_at, &mut out);
    let execute_at = out[begin..].to_vec();
    out.push(b'"');
    member("callbackUrl", shown_url.as_bytes(), &mut out);
    out.extend_from_slice(
        b",\"method\":\"POST\",\"headers\":{},\"callbackTimeoutSeconds\":10,\"tags\":[],\"attempts\":0,\"attemptLog\":[]",
    );
    out.extend_from_slice(b",\"createdAt\":\"");
    let begin = out.len();
    write_instant(now, &mut out);
    let created_at = out[begin..].to_vec();
    out.push(b'"');
    member("updatedAt", &created_at, &mut out);
    out.extend_from_slice(b",\"payload\":");
    out.extend_from_slice(
        fields
            .payload
            .as_ref()
            .map_or(b"null", |payload| &text[payload.clone()]),
    );
    member("nextAttemptAt", &execute_at, &mut out);
    out.push(b'}');
    out
}

fn member(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":\"");
    out.extend_from_slice(value);
    out.push(b'"');
}

fn number(name: &str, value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    out.extend_from_slice(value.to_string().as_bytes());
}

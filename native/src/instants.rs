//! Instants and durations in microseconds, in the forms of their texts that clients usually send.

const SECOND: i64 = 1_000_000;
const DAY_S: i64 = 86_400;
/// The instants that have texts: those of the years 1 to 9999.
pub const INSTANTS: std::ops::RangeInclusive<i64> =
    -62_135_596_800 * SECOND..=253_402_300_800 * SECOND - 1;

/// The instant of a text like `2027-01-31T12:00:00Z`, with up to six digits of a fraction; `None` for every other.
pub fn parse_instant(text: &[u8]) -> Option<i64> {
    let (second, fraction) = text.split_at_checked(19)?;
    let (year, month, day) = (
        number(&second[..4])?,
        number(&second[5..7])?,
        number(&second[8..10])?,
    );
    let (hour, minute, s) = (
        number(&second[11..13])?,
        number(&second[14..16])?,
        number(&second[17..])?,
    );
    let marks = [second[4], second[7], second[10], second[13], second[16]];
    if marks != *b"--T::" || hour > 23 || minute > 59 || s > 59 || year == 0 {
        return None;
    }
    if !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&day) {
        return None;
    }
    let micros = match fraction {
        b"Z" => 0,
        [b'.', digits @ .., b'Z'] if (1..=6).contains(&digits.len()) => {
            number(digits)? * 10_i64.pow(6 - digits.len() as u32)
        }
        _ => return None,
    };
    Some(
        ((days_before(year, month, day) * 24 + hour) * 60 + minute) * 60 * SECOND
            + s * SECOND
            + micros,
    )
}

/// The longest text of a duration, as in Python.
const DURATION_BYTES_MAX: usize = 200;

/// The microseconds of a text like `30s` or `1h30m`, of whole numbers of at most nine digits; `None` for every other.
pub fn parse_duration(text: &[u8]) -> Option<i64> {
    if text.len() > DURATION_BYTES_MAX {
        return None;
    }
    let (mut total, mut rest) = (0_i64, text);
    while !rest.is_empty() {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !(1..=9).contains(&digits) {
            return None;
        }
        let count = number(&rest[..digits])?;
        rest = &rest[digits..];
        let letters = rest
            .iter()
            .take_while(|byte| byte.is_ascii_lowercase())
            .count();
        let unit = match &rest[..letters] {
            b"us" => 1,
            b"ms" => 1_000,
            b"s" => SECOND,
            b"m" => 60 * SECOND,
            b"h" => 3_600 * SECOND,
            b"d" => DAY_S * SECOND,
            _ => return None,
        };
        rest = &rest[letters..];
        // Less than 2^62, which is the limit of all durations.
        total = total.checked_add(count.checked_mul(unit)?)?;
    }
    (!text.is_empty() && total < 1 << 62).then_some(total)
}

/// Writes the text of one of `INSTANTS`: in UTC, with six digits of a fraction unless they are all zero.
pub fn write_instant(instant: i64, out: &mut Vec<u8>) {
    let (second, micros) = (instant.div_euclid(SECOND), instant.rem_euclid(SECOND));
    let (year, month, day) = date_of(second.div_euclid(DAY_S));
    let of_day = second.rem_euclid(DAY_S);
    for (value, digits, end) in [
        (year, 4, b"-"),
        (month, 2, b"-"),
        (day, 2, b"T"),
        (of_day / 3_600, 2, b":"),
        (of_day / 60 % 60, 2, b":"),
    ] {
        write_digits(value, digits, out);
        out.extend_from_slice(end);
    }
    write_digits(of_day % 60, 2, out);
    if micros != 0 {
        out.push(b'.');
        write_digits(micros, 6, out);
    }
    out.push(b'Z');
}

fn write_digits(value: i64, digits: usize, out: &mut Vec<u8>) {
    let end = out.len() + digits;
    out.resize(end, b'0');
    let mut left = value;
    for place in out[end - digits..].iter_mut().rev() {
        *place = b'0' + (left % 10) as u8;
        left /= 10;
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |value, digit| {
        digit
            .is_ascii_digit()
            .then(|| value * 10 + i64::from(digit - b'0'))
    })
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the proleptic Gregorian calendar.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that the leap day is the last of its year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    year * 365 + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (month * 153 + 2) / 5
        + day
        - 719_469
}

/// Year, month and day, from the days since 1970-01-01.
fn date_of(days: i64) -> (i64, i64, i64) {
    // A first guess by the mean length of a year is off by one at most.
    let mut year = 1970 + (days * 400).div_euclid(146_097);
    while days_before(year, 1, 1) > days {
        year -= 1;
    }
    while days_before(year + 1, 1, 1) <= days {
        year += 1;
    }
    let mut day = days - days_before(year, 1, 1) + 1;
    let mut month = 1;
    while day > days_in(year, month) {
        day -= days_in(year, month);
        month += 1;
    }
    (year, month, day)
}

package dev.tocsin.client;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.YearMonth;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Instants and durations as the API writes them, with microseconds. What is finer than that rounds up. */
public final class Values {
    private static final Pattern INSTANT = Pattern.compile(
            "([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]((?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2})(?:\\.([0-9]{1,12}))?"
                    + "([Zz]|[+-][0-9]{2}:[0-9]{2})");
    private static final String SHAPE = "0000-00-00T00:00:00.000000";
    private static final Pattern PART = Pattern.compile("([0-9]+(?:\\.[0-9]+)?)(us|ms|s|m|h|d)");
    private static final Instant FIRST = Instant.parse("0001-01-01T00:00:00Z");
    private static final Instant LAST = Instant.parse("9999-12-31T23:59:59.999999Z");
    private static final String[] UNITS = {"d", "h", "m", "s", "ms", "us"};
    private static final long[] UNITS_US = {86_400_000_000L, 3_600_000_000L, 60_000_000L, 1_000_000L, 1_000L, 1L};

    private Values() {}

    /**
     * Reads an RFC 3339 instant.
     *
     * @param text such as 2027-01-31T12:00:00Z
     * @return the instant
     * @throws JsonException if it is none, or not between the years 1 and 9999
     */
    public static Instant parseInstant(String text) {
        Instant written = asServersWrite(text);
        if (written != null) {
            return written;
        }
        Matcher found = INSTANT.matcher(text);
        if (!found.matches()) {
            throw new JsonException(
                    "'" + text + "' is not an RFC 3339 instant with a time zone, such as 2027-01-31T12:00:00Z");
        }
        try {
            String zone = found.group(4);
            ZoneOffset offset = zone.equalsIgnoreCase("Z") ? ZoneOffset.UTC : ZoneOffset.of(zone);
            Instant second = LocalDateTime.parse(found.group(1) + "T" + found.group(2)).toInstant(offset);
            String fraction = found.group(3) == null ? "0" : found.group(3);
            long microseconds = new BigDecimal("0." + fraction).movePointRight(6).setScale(0,
                    RoundingMode.CEILING).longValue();
            return checked(second.plus(microseconds, ChronoUnit.MICROS));
        } catch (DateTimeException wrong) {
            throw new JsonException("'" + text + "' is not an instant between the years 1 and 9999");
        }
    }

    /** An instant in the form of all answers, without the cost of a regular expression; null: it has another. */
    private static @Nullable Instant asServersWrite(String text) {
        int length = text.length();
        boolean fraction = length == 27;
        if (length != 20 && !fraction || text.charAt(length - 1) != 'Z') {
            return null;
        }
        for (int i = 0; i < length - 1; i++) {
            char wanted = SHAPE.charAt(i);
            char c = text.charAt(i);
            if (wanted == '0' ? c < '0' || c > '9' : c != wanted) {
                return null;
            }
        }
        int month = number(text, 5, 7);
        int day = number(text, 8, 10);
        int hour = number(text, 11, 13);
        int minute = number(text, 14, 16);
        int second = number(text, 17, 19);
        // What is not certainly a date is left to the exact way.
        if (month < 1 || month > 12 || day < 1 || day > 28 && day > YearMonth.of(number(text, 0, 4), month).lengthOfMonth()
                || hour > 23 || minute > 59 || second > 59 || text.startsWith("0000")) {
            return null;
        }
        long epochDay = LocalDate.of(number(text, 0, 4), month, day).toEpochDay();
        long nanos = fraction ? number(text, 20, 26) * 1000L : 0;
        return Instant.ofEpochSecond(epochDay * 86_400 + hour * 3_600 + minute * 60 + second, nanos);
    }

    private static int number(String text, int from, int to) {
        return Integer.parseInt(text, from, to, 10);
    }

    /**
     * Writes an instant in RFC 3339, in UTC.
     *
     * @param instant between the years 1 and 9999
     * @return such as 2027-01-31T12:00:00.000001Z
     * @throws JsonException if it is not between these years
     */
    public static String format(Instant instant) {
        Instant exact = checked(instant).plusNanos(999).truncatedTo(ChronoUnit.MICROS);
        OffsetDateTime utc = exact.atOffset(ZoneOffset.UTC);
        String second = utc.toLocalDateTime().truncatedTo(ChronoUnit.SECONDS).toString();
        second = second.length() == 16 ? second + ":00" : second;
        return second + (utc.getNano() == 0 ? "Z" : String.format(".%06dZ", utc.getNano() / 1000));
    }

    private static Instant checked(Instant instant) {
        if (instant.isBefore(FIRST) || instant.isAfter(LAST)) {
            throw new JsonException(instant + " is not between the years 1 and 9999");
        }
        return instant;
    }

    /**
     * Reads a duration.
     *
     * @param text such as 500ms, 1h30m or 7d
     * @return the duration
     * @throws JsonException if it is none
     */
    public static Duration parseDuration(String text) {
        Matcher part = PART.matcher(text);
        BigDecimal microseconds = BigDecimal.ZERO;
        int at = 0;
        while (at < text.length() && part.region(at, text.length()).lookingAt()) {
            long unit = 0;
            for (int i = 0; i < UNITS.length; i++) {
                unit = UNITS[i].equals(part.group(2)) ? UNITS_US[i] : unit;
            }
            microseconds = microseconds.add(new BigDecimal(part.group(1)).multiply(BigDecimal.valueOf(unit)));
            at = part.end();
        }
        if (text.isEmpty() || at < text.length()) {
            throw new JsonException("'" + text + "' is not a duration; write it as 500ms, 30s, 1h30m or 7d");
        }
        try {
            return Duration.of(microseconds.setScale(0, RoundingMode.CEILING).longValueExact(), ChronoUnit.MICROS);
        } catch (ArithmeticException tooLong) {
            throw new JsonException("'" + text + "' is longer than 292,000 years");
        }
    }

    /**
     * Writes a duration.
     *
     * @param duration zero or longer
     * @return such as 1h30m
     * @throws JsonException if it is negative, or longer than 292,000 years
     */
    public static String format(Duration duration) {
        if (duration.isNegative()) {
            throw new JsonException(duration + " is negative; a duration is zero or longer");
        }
        long left;
        try {
            left = Math.addExact(Math.multiplyExact(duration.getSeconds(), 1_000_000L), (duration.getNano() + 999) / 1000);
        } catch (ArithmeticException tooLong) {
            throw new JsonException(duration + " is longer than 292,000 years");
        }
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < UNITS.length; i++) {
            if (left >= UNITS_US[i]) {
                text.append(left / UNITS_US[i]).append(UNITS[i]);
            }
            left %= UNITS_US[i];
        }
        return text.length() == 0 ? "0s" : text.toString();
    }

    /**
     * An instant as JSON.
     *
     * @param instant between the years 1 and 9999
     * @return a JSON string
     */
    public static Json toJson(Instant instant) {
        return Json.of(format(instant));
    }

    /**
     * A duration as JSON.
     *
     * @param duration zero or longer
     * @return a JSON string
     */
    public static Json toJson(Duration duration) {
        return Json.of(format(duration));
    }

    /**
     * The instant in a JSON string.
     *
     * @param json a string
     * @return the instant
     */
    public static Instant toInstant(Json json) {
        return parseInstant(json.asString());
    }

    /**
     * The duration in a JSON string.
     *
     * @param json a string
     * @return the duration
     */
    public static Duration toDuration(Json json) {
        return parseDuration(json.asString());
    }
}

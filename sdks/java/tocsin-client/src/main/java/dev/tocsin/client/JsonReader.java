package dev.tocsin.client;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads JSON (RFC 8259). */
final class JsonReader {
    private static final Pattern NUMBER = Pattern.compile("-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]{1,9})?");

    /** Fewer than a long has. */
    private static final int PLAIN_DIGITS = 18;

    private final String text;
    private int at;
    private int depth;

    JsonReader(String text) {
        this.text = text;
    }

    Json document() {
        Json value = value();
        skipSpace();
        if (at < text.length()) {
            throw wrong("something follows the value");
        }
        return value;
    }

    private Json value() {
        skipSpace();
        char c = peek();
        switch (c) {
            case '{':
                return nested(this::object);
            case '[':
                return nested(this::array);
            case '"':
                return Json.of(string());
            case 't':
                return literal("true", Json.of(true));
            case 'f':
                return literal("false", Json.of(false));
            case 'n':
                return literal("null", Json.NULL);
            default:
                return number();
        }
    }

    private Json nested(java.util.function.Supplier<Json> read) {
        if (++depth > Json.DEPTH_MAX) {
            throw wrong("more than " + Json.DEPTH_MAX + " levels of arrays and objects");
        }
        at++;
        skipSpace();
        Json value = read.get();
        depth--;
        return value;
    }

    private Json object() {
        Map<String, Json> members = new LinkedHashMap<>();
        if (!skipIf('}')) {
            do {
                skipSpace();
                if (peek() != '"') {
                    throw wrong("a member's name is expected");
                }
                String name = string();
                skipSpace();
                if (!skipIf(':')) {
                    throw wrong("a colon is expected");
                }
                members.put(name, value());
                skipSpace();
            } while (skipIf(','));
            if (!skipIf('}')) {
                throw wrong("a comma or the object's end is expected");
            }
        }
        return Json.read(Collections.unmodifiableMap(members));
    }

    private Json array() {
        List<Json> elements = new ArrayList<>();
        if (!skipIf(']')) {
            do {
                elements.add(value());
                skipSpace();
            } while (skipIf(','));
            if (!skipIf(']')) {
                throw wrong("a comma or the array's end is expected");
            }
        }
        return Json.read(Collections.unmodifiableList(elements));
    }

    private Json number() {
        int end = at;
        while (end < text.length() && end - at < PLAIN_DIGITS && isDigit(text.charAt(end))) {
            end++;
        }
        // Most numbers are short and whole.
        boolean plain = end > at && (text.charAt(at) != '0' || end == at + 1)
                && (end == text.length() || ",]} \t\r\n".indexOf(text.charAt(end)) >= 0);
        if (plain) {
            long value = Long.parseLong(text, at, end, 10);
            at = end;
            return Json.of(value);
        }
        Matcher found = NUMBER.matcher(text).region(at, text.length());
        if (!found.lookingAt()) {
            throw wrong("a value is expected");
        }
        at = found.end();
        return Json.of(new BigDecimal(found.group()));
    }

    private static boolean isDigit(char c) {
        return c >= '0' && c <= '9';
    }

    private Json literal(String word, Json value) {
        if (!text.startsWith(word, at)) {
            throw wrong("a value is expected");
        }
        at += word.length();
        return value;
    }

    private String string() {
        at++;
        int plain = at;
        while (plain < text.length() && isPlain(text.charAt(plain))) {
            plain++;
        }
        if (plain < text.length() && text.charAt(plain) == '"') {
            String whole = text.substring(at, plain);
            at = plain + 1;
            return whole;
        }
        StringBuilder read = new StringBuilder().append(text, at, plain);
        at = plain;
        while (true) {
            char c = peek();
            at++;
            if (c == '"') {
                return read.toString();
            }
            if (c < 0x20) {
                throw wrong("a control character stands in a string");
            }
            read.append(c == '\\' ? escaped() : c);
        }
    }

    /** Whether it stands for itself in a string. */
    private static boolean isPlain(char c) {
        return c >= 0x20 && c != '"' && c != '\\';
    }

    private char escaped() {
        char c = peek();
        at++;
        switch (c) {
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case '"', '\\', '/':
                return c;
            case 'u':
                return hex();
            default:
                throw wrong("an unknown escape stands in a string");
        }
    }

    private char hex() {
        int code = 0;
        for (int end = at + 4; at < end; at++) {
            int digit = Character.digit(peek(), 16);
            if (digit < 0 || peek() > 'f') {
                throw wrong("four hexadecimal digits are expected");
            }
            code = code * 16 + digit;
        }
        return (char) code;
    }

    private void skipSpace() {
        while (at < text.length()) {
            char c = text.charAt(at);
            if (c != ' ' && c != '\n' && c != '\r' && c != '\t') {
                return;
            }
            at++;
        }
    }

    private boolean skipIf(char c) {
        boolean found = at < text.length() && text.charAt(at) == c;
        at += found ? 1 : 0;
        return found;
    }

    private char peek() {
        if (at >= text.length()) {
            throw wrong("the text ends early");
        }
        return text.charAt(at);
    }

    private JsonException wrong(String what) {
        return new JsonException("not JSON at character " + at + ": " + what);
    }
}

package dev.tocsin.client;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** An immutable JSON value. Numbers keep the digits with which they were written. */
public final class Json {
    /** JSON's null. */
    public static final Json NULL = new Json(null);

    /** Deeper than anything that the server accepts; a stack has room for it. */
    static final int DEPTH_MAX = 500;
    /** Of most requests. */
    private static final int INITIAL_CHARS = 512;

    /** Null, Boolean, String, Number, List or Map; a Number that was read is a BigDecimal. */
    private final @Nullable Object value;

    private Json(@Nullable Object value) {
        this.value = value;
    }

    /**
     * Reads a text.
     *
     * @param text JSON
     * @return the value
     * @throws JsonException if it is not JSON; the message has the position
     */
    public static Json parse(String text) {
        return new JsonReader(text).document();
    }

    /**
     * A string.
     *
     * @param value null becomes JSON's null
     * @return the value
     */
    public static Json of(@Nullable String value) {
        return value == null ? NULL : new Json(value);
    }

    /**
     * A whole number.
     *
     * @param value the number
     * @return the value
     */
    public static Json of(long value) {
        return new Json(BigDecimal.valueOf(value));
    }

    /**
     * A number.
     *
     * @param value a finite number
     * @return the value
     * @throws JsonException if it is infinite or not a number
     */
    public static Json of(double value) {
        if (!Double.isFinite(value)) {
            throw new JsonException(value + " can't be written as JSON; give a finite number");
        }
        return of(new BigDecimal(Double.toString(value)));
    }

    /**
     * A number with all its digits.
     *
     * @param value the number
     * @return the value
     */
    public static Json of(BigDecimal value) {
        return new Json(Objects.requireNonNull(value));
    }

    /**
     * True or false.
     *
     * @param value which
     * @return the value
     */
    public static Json of(boolean value) {
        return new Json(value);
    }

    /**
     * An object without members; {@code with} adds some.
     *
     * @return the value
     */
    public static Json object() {
        return new Json(Map.of());
    }

    /**
     * An object.
     *
     * @param members in their order
     * @return the value
     */
    public static Json object(Map<String, Json> members) {
        return object(members, each -> each);
    }

    /**
     * An object of other values.
     *
     * @param members in their order
     * @param write makes JSON of one
     * @param <T> the values' type
     * @return the value
     */
    public static <T> Json object(Map<String, T> members, Function<? super T, Json> write) {
        Map<String, Json> copy = new LinkedHashMap<>();
        members.forEach((name, each) -> copy.put(Objects.requireNonNull(name), orNull(each, write)));
        return new Json(Collections.unmodifiableMap(copy));
    }

    /**
     * An array.
     *
     * @param elements in their order
     * @return the value
     */
    public static Json array(Json... elements) {
        return array(List.of(elements), each -> each);
    }

    /**
     * An array of other values.
     *
     * @param elements in their order
     * @param write makes JSON of one
     * @param <T> the values' type
     * @return the value
     */
    public static <T> Json array(Collection<T> elements, Function<? super T, Json> write) {
        List<Json> copy = new ArrayList<>(elements.size());
        elements.forEach(each -> copy.add(orNull(each, write)));
        return new Json(Collections.unmodifiableList(copy));
    }

    private static <T> Json orNull(@Nullable T value, Function<? super T, Json> write) {
        return value == null ? NULL : write.apply(value);
    }

    /**
     * This object with one more member, or another value of it.
     *
     * @param name of the member
     * @param value of the member
     * @return a copy
     */
    public Json with(String name, Json value) {
        Map<String, Json> members = new LinkedHashMap<>(asMap());
        members.put(name, value);
        return object(members);
    }

    /**
     * This object with one more member.
     *
     * @param name of the member
     * @param value of the member
     * @return a copy
     */
    public Json with(String name, @Nullable String value) {
        return with(name, of(value));
    }

    /**
     * This object with one more member.
     *
     * @param name of the member
     * @param value of the member
     * @return a copy
     */
    public Json with(String name, long value) {
        return with(name, of(value));
    }

    /**
     * This object with one more member.
     *
     * @param name of the member
     * @param value of the member
     * @return a copy
     */
    public Json with(String name, double value) {
        return with(name, of(value));
    }

    /**
     * This object with one more member.
     *
     * @param name of the member
     * @param value of the member
     * @return a copy
     */
    public Json with(String name, boolean value) {
        return with(name, of(value));
    }

    /**
     * Whether this is JSON's null.
     *
     * @return true for null
     */
    public boolean isNull() {
        return value == null;
    }

    /**
     * Whether this is an object.
     *
     * @return true for an object
     */
    public boolean isObject() {
        return value instanceof Map;
    }

    /**
     * Whether this is an array.
     *
     * @return true for an array
     */
    public boolean isArray() {
        return value instanceof List;
    }

    /**
     * Whether this is a string.
     *
     * @return true for a string
     */
    public boolean isString() {
        return value instanceof String;
    }

    /**
     * A member of this object.
     *
     * @param name of the member
     * @return its value
     * @throws JsonException if this is no object, or has no such member
     */
    public Json get(String name) {
        Json member = asMap().get(name);
        if (member == null) {
            throw new JsonException("the object has no member " + name);
        }
        return member;
    }

    /**
     * Whether this is an object with such a member.
     *
     * @param name of the member
     * @return false if it is absent
     */
    public boolean has(String name) {
        return isObject() && asMap().containsKey(name);
    }

    /**
     * A member of this object, read by a function.
     *
     * @param name of the member
     * @param read makes something of the value
     * @param <T> what that is
     * @return what was read
     * @throws JsonException if there is no such member, or it can't be read
     */
    public <T> T read(String name, Function<Json, T> read) {
        Json member = get(name);
        try {
            return read.apply(member);
        } catch (JsonException wrong) {
            throw new JsonException(name + ": " + wrong.getMessage());
        }
    }

    /**
     * A member that may be absent or null, read by a function.
     *
     * @param name of the member
     * @param read makes something of a value that is not null
     * @param <T> what that is
     * @return null if absent or null
     * @throws JsonException if it can't be read
     */
    public <T> @Nullable T readOptional(String name, Function<Json, T> read) {
        Json member = asMap().get(name);
        return member == null || member.isNull() ? null : read(name, read);
    }

    /**
     * A member that must be there but may be null, read by a function.
     *
     * @param name of the member
     * @param read makes something of a value that is not null
     * @param <T> what that is
     * @return null if null
     * @throws JsonException if it is absent or can't be read
     */
    public <T> @Nullable T readNullable(String name, Function<Json, T> read) {
        return read(name, nullable(read));
    }

    /**
     * A function that reads a value or null.
     *
     * @param read makes something of a value that is not null
     * @param <T> what that is
     * @return a function that returns null for null
     */
    public static <T> Function<Json, @Nullable T> nullable(Function<Json, T> read) {
        return json -> json.isNull() ? null : read.apply(json);
    }

    /**
     * The string.
     *
     * @return the string
     * @throws JsonException if this is none
     */
    public String asString() {
        return as(String.class, "a string");
    }

    /**
     * The truth value.
     *
     * @return the truth value
     * @throws JsonException if this is none
     */
    public boolean asBoolean() {
        return as(Boolean.class, "true or false");
    }

    /**
     * The number with all its digits.
     *
     * @return the number
     * @throws JsonException if this is none
     */
    public BigDecimal asNumber() {
        return as(BigDecimal.class, "a number");
    }

    /**
     * The number.
     *
     * @return the nearest double
     * @throws JsonException if this is no number
     */
    public double asDouble() {
        return asNumber().doubleValue();
    }

    /**
     * The whole number.
     *
     * @return the number
     * @throws JsonException if this is no whole number of 64 bits
     */
    public long asLong() {
        BigDecimal number = asNumber();
        // The digits of 1e999999999 would fill the memory.
        if (number.precision() - number.scale() <= 20) {
            try {
                return number.longValueExact();
            } catch (ArithmeticException inexact) {
                throw new JsonException(this + " is not a whole number of 64 bits");
            }
        }
        throw new JsonException("the number is too large for 64 bits");
    }

    /**
     * The whole number.
     *
     * @return the number
     * @throws JsonException if this is no whole number of 32 bits
     */
    public int asInt() {
        long number = asLong();
        if ((int) number != number) {
            throw new JsonException(number + " is not a whole number of 32 bits");
        }
        return (int) number;
    }

    /**
     * The elements of this array.
     *
     * @return an unmodifiable list
     * @throws JsonException if this is none
     */
    @SuppressWarnings("unchecked")
    public List<Json> asList() {
        return (List<Json>) as(List.class, "an array");
    }

    /**
     * The elements of this array, each read by a function.
     *
     * @param read makes something of an element
     * @param <T> what that is
     * @return an unmodifiable list
     * @throws JsonException if this is no array
     */
    public <T> List<T> asList(Function<Json, T> read) {
        List<T> elements = new ArrayList<>();
        asList().forEach(each -> elements.add(read.apply(each)));
        return Collections.unmodifiableList(elements);
    }

    /**
     * The members of this object, in their order.
     *
     * @return an unmodifiable map
     * @throws JsonException if this is none
     */
    @SuppressWarnings("unchecked")
    public Map<String, Json> asMap() {
        return (Map<String, Json>) as(Map.class, "an object");
    }

    /**
     * The members of this object, each read by a function.
     *
     * @param read makes something of a member's value
     * @param <T> what that is
     * @return an unmodifiable map
     * @throws JsonException if this is no object
     */
    public <T> Map<String, T> asMap(Function<Json, T> read) {
        Map<String, T> members = new LinkedHashMap<>();
        asMap().forEach((name, each) -> members.put(name, read.apply(each)));
        return Collections.unmodifiableMap(members);
    }

    private <T> T as(Class<T> type, String wanted) {
        if (!type.isInstance(value)) {
            throw new JsonException(kind() + " stands where " + wanted + " is expected");
        }
        return type.cast(value);
    }

    private String kind() {
        if (value == null) {
            return "null";
        }
        if (value instanceof Boolean) {
            return "a truth value";
        }
        return isString() ? "a string" : isArray() ? "an array" : isObject() ? "an object" : "a number";
    }

    @Override
    public boolean equals(@Nullable Object other) {
        if (!(other instanceof Json json)) {
            return false;
        }
        if (value instanceof BigDecimal number && json.value instanceof BigDecimal second) {
            return number.compareTo(second) == 0;
        }
        return Objects.equals(value, json.value);
    }

    @Override
    public int hashCode() {
        return value instanceof BigDecimal number ? Double.hashCode(number.doubleValue()) : Objects.hashCode(value);
    }

    /** Compact JSON. JsonException: more than 500 levels of arrays and objects, or a text with half of a surrogate pair. */
    @Override
    public String toString() {
        StringBuilder text = new StringBuilder(INITIAL_CHARS);
        write(text, 0);
        return text.toString();
    }

    private void write(StringBuilder text, int depth) {
        if (depth > DEPTH_MAX) {
            throw new JsonException("more than " + DEPTH_MAX + " levels of arrays and objects");
        }
        if (value instanceof String string) {
            quote(text, string);
        } else if (isArray()) {
            char before = '[';
            for (Json element : asList()) {
                text.append(before);
                element.write(text, depth + 1);
                before = ',';
            }
            text.append(before == '[' ? "[]" : "]");
        } else if (isObject()) {
            char before = '{';
            for (Map.Entry<String, Json> member : asMap().entrySet()) {
                quote(text.append(before), member.getKey());
                member.getValue().write(text.append(':'), depth + 1);
                before = ',';
            }
            text.append(before == '{' ? "{}" : "}");
        } else {
            text.append(value);
        }
    }

    private static void quote(StringBuilder text, String string) {
        text.append('"');
        for (int i = 0; i < string.length(); i++) {
            char c = string.charAt(i);
            switch (c) {
                case '"' -> text.append("\\\"");
                case '\\' -> text.append("\\\\");
                case '\n' -> text.append("\\n");
                case '\r' -> text.append("\\r");
                case '\t' -> text.append("\\t");
                default -> {
                    if (isLoneSurrogate(string, i)) {
                        throw new JsonException("a text has half of a surrogate pair, which no request can contain");
                    }
                    if (c < 0x20) {
                        text.append(String.format("\\u%04x", (int) c));
                    } else {
                        text.append(c);
                    }
                }
            }
        }
        text.append('"');
    }

    private static boolean isLoneSurrogate(String string, int i) {
        char c = string.charAt(i);
        if (Character.isHighSurrogate(c)) {
            return i + 1 == string.length() || !Character.isLowSurrogate(string.charAt(i + 1));
        }
        return Character.isLowSurrogate(c) && (i == 0 || !Character.isHighSurrogate(string.charAt(i - 1)));
    }

    /** A value that was read: what it contains is not copied. */
    static Json read(@Nullable Object value) {
        return value == null ? NULL : new Json(value);
    }
}

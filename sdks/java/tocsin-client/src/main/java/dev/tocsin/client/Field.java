package dev.tocsin.client;

import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * An optional member of a request: absent, null, or a value. In updates an absent member stays as it is, and null removes
 * what can be removed.
 *
 * @param <T> the type of the value
 */
public final class Field<T> {
    private static final Field<?> ABSENT = new Field<>(false, null);
    private static final Field<?> NULL = new Field<>(true, null);

    private final boolean present;
    private final @Nullable T value;

    private Field(boolean present, @Nullable T value) {
        this.present = present;
        this.value = value;
    }

    /**
     * The member is not sent.
     *
     * @param <T> the type that a value would have
     * @return the absent field
     */
    @SuppressWarnings("unchecked")
    public static <T> Field<T> absent() {
        return (Field<T>) ABSENT;
    }

    /**
     * The member is sent as null.
     *
     * @param <T> the type that a value would have
     * @return the field that is null
     */
    @SuppressWarnings("unchecked")
    public static <T> Field<T> ofNull() {
        return (Field<T>) NULL;
    }

    /**
     * The member is sent with a value.
     *
     * @param value not null
     * @param <T> its type
     * @return the field
     */
    public static <T> Field<T> of(T value) {
        return new Field<>(true, Objects.requireNonNull(value, "the value is null; use Field.ofNull() or Field.absent()"));
    }

    /**
     * Whether the member is sent, as a value or as null.
     *
     * @return false if absent
     */
    public boolean isPresent() {
        return present;
    }

    /**
     * The value.
     *
     * @return null if absent or null
     */
    public @Nullable T orNull() {
        return value;
    }

    /**
     * Adds the member to an object that is sent, unless it is absent.
     *
     * @param members of the object
     * @param name of the member
     * @param write makes JSON of the value
     */
    public void putInto(Map<String, Json> members, String name, Function<? super T, Json> write) {
        if (present) {
            members.put(name, value == null ? Json.NULL : write.apply(value));
        }
    }

    @Override
    public boolean equals(@Nullable Object other) {
        return other instanceof Field<?> field && present == field.present && Objects.equals(value, field.value);
    }

    @Override
    public int hashCode() {
        return Objects.hash(present, value);
    }

    @Override
    public String toString() {
        return present ? String.valueOf(value) : "absent";
    }
}

package dev.tocsin.client;

import java.util.Set;
import java.util.function.Function;

/** Whether an update took effect. */
final class Updates {
    /** They name the object; the answer has its id under another name. */
    private static final Set<String> NAMING = Set.of("namespace", "timerId", "scheduleId");
    /** The answer also has the defaults of what was left out in them. */
    private static final Set<String> COMPLETED = Set.of("retryPolicy", "body");

    private Updates() {}

    /**
     * Whether an object that the server shows has the fields of an update. A delay can't be found in it, nor what the server
     * redacts.
     */
    static boolean hasFields(Json shown, Json sent) {
        return sent.asMap().keySet().stream()
                .allMatch(name -> NAMING.contains(name) || isStored(name, shown, sent.get(name)));
    }

    private static boolean isStored(String name, Json shown, Json sent) {
        if (name.equals("payload")) {
            return shown.has(name) && shown.get(name).equals(sent); // beside a raw body there is none
        }
        Json found = member(shown, name);
        return COMPLETED.contains(name) && found.isObject() && sent.isObject()
                ? sent.asMap().keySet().stream().allMatch(part -> isSame(member(found, part), sent.get(part)))
                : isSame(found, sent);
    }

    private static Json member(Json object, String name) {
        return object.has(name) ? object.get(name) : Json.NULL;
    }

    /** Instants and durations have several texts, and what was removed is absent or empty. */
    private static boolean isSame(Json shown, Json sent) {
        if (sent.isNull()) {
            return shown.isNull() || shown.isObject() && shown.asMap().isEmpty() || shown.isArray() && shown.asList().isEmpty();
        }
        return shown.equals(sent) || isSame(shown, sent, Values::toInstant) || isSame(shown, sent, Values::toDuration);
    }

    private static <T> boolean isSame(Json shown, Json sent, Function<Json, T> read) {
        try {
            return read.apply(shown).equals(read.apply(sent));
        } catch (JsonException another) {
            return false;
        }
    }
}

package dev.tocsin.client;

import java.util.Map;
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
        for (Map.Entry<String, Json> each : sent.asMap().entrySet()) {
            Json found = member(shown, each.getKey());
            Json wanted = each.getValue();
            boolean isSame = COMPLETED.contains(each.getKey()) && found.isObject() && wanted.isObject()
                    ? wanted.asMap().keySet().stream().allMatch(part -> isSame(member(found, part), wanted.get(part)))
                    : isSame(found, wanted);
            if (!isSame && !NAMING.contains(each.getKey())) {
                return false;
            }
        }
        return true;
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

package dev.tocsin.client;

import dev.tocsin.client.error.ApiException;
import dev.tocsin.client.error.VersionConflictException;
import java.util.Set;
import java.util.function.Function;

/** Whether an update took effect. */
final class Updates {
    /** They name the object, whose id the answer has under another name, or state how to write it. */
    private static final Set<String> UNSTORED = Set.of("namespace", "timerId", "scheduleId", "expectedVersion", "dryRun");
    /** The answer also has the defaults of what was left out in them. */
    private static final Set<String> COMPLETED = Set.of("retryPolicy", "body");

    private Updates() {}

    /** Whether an object that the server shows can have the fields that were sent by this call, which was refused at last. */
    static boolean isWritten(Json shown, Json sent, ApiException refused) {
        if (member(sent, "dryRun").equals(Json.of(true)) || !hasFields(shown, sent)) {
            return false;
        }
        return !(refused instanceof VersionConflictException) || sent.has("expectedVersion") && shown.has("version")
                && shown.get("version").asLong() == sent.get("expectedVersion").asLong() + 1;
    }

    /**
     * Whether an object that the server shows has the fields of an update. A delay can't be found in it, nor what the server
     * redacts.
     */
    static boolean hasFields(Json shown, Json sent) {
        return sent.asMap().keySet().stream()
                .allMatch(name -> UNSTORED.contains(name) || isStored(name, shown, sent.get(name)));
    }

    private static boolean isStored(String name, Json shown, Json sent) {
        if (name.equals("payload")) {
            return shown.has(name) && shown.get(name).equals(sent); // beside a raw body there is none
        }
        if (name.equals("paused") && !shown.has(name)) { // of a schedule, whose state has it; one that is there stays as it is
            return !sent.equals(Json.of(true)) || member(shown, "status").equals(Json.of("paused"));
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

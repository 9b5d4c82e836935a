package dev.tocsin.client;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A request as it is meant, whatever number of tries it takes.
 *
 * @param firstHeaders headers of the first try only
 * @param safe whether it may be repeated after a try that may have been executed
 * @param place the timer that it writes, if its owner may be asked directly; else null
 */
record Call(
        Operation operation,
        @Nullable Json body,
        Map<String, String> path,
        Map<String, List<String>> query,
        Map<String, String> headers,
        Map<String, String> firstHeaders,
        boolean safe,
        @Nullable Place place) {
    static Call of(Operation operation, @Nullable Json body) {
        return new Call(operation, body, Map.of(), Map.of(), Map.of(), Map.of(), true, null);
    }

    static Call at(Operation operation, Map<String, String> path) {
        return new Call(operation, null, path, Map.of(), Map.of(), Map.of(), true, null);
    }

    Call body(Json body) {
        return new Call(operation, body, path, query, headers, firstHeaders, safe, place);
    }

    Call query(Map<String, List<String>> query) {
        return new Call(operation, body, path, query, headers, firstHeaders, safe, place);
    }

    Call headers(Map<String, String> headers) {
        return new Call(operation, body, path, query, headers, firstHeaders, safe, place);
    }

    Call firstHeaders(Map<String, String> firstHeaders) {
        return new Call(operation, body, path, query, headers, firstHeaders, safe, place);
    }

    Call unsafe() {
        return new Call(operation, body, path, query, headers, firstHeaders, false, place);
    }

    Call place(@Nullable Place place) {
        return new Call(operation, body, path, query, headers, firstHeaders, safe, place);
    }

    /** Path and query of the request. */
    String target() {
        String target = operation.path;
        for (Map.Entry<String, String> each : path.entrySet()) {
            target = target.replace("{" + each.getKey() + "}", encoded(each.getValue()));
        }
        StringBuilder all = new StringBuilder(target);
        String before = "?";
        for (Map.Entry<String, List<String>> each : query.entrySet()) {
            for (String value : each.getValue()) {
                all.append(before).append(encoded(each.getKey())).append('=').append(encoded(value));
                before = "&";
            }
        }
        return all.toString();
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
    }
}

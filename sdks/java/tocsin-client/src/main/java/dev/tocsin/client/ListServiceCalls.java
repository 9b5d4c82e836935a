package dev.tocsin.client;

import dev.tocsin.client.model.ServiceCallStatus;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Which service calls of a tenant are listed. Immutable: each method returns a copy with one more condition. */
public final class ListServiceCalls {
    private final Map<String, List<String>> query;

    private ListServiceCalls(Map<String, List<String>> query) {
        this.query = query;
    }

    /**
     * All of them.
     *
     * @return no conditions
     */
    public static ListServiceCalls all() {
        return new ListServiceCalls(Map.of());
    }

    /**
     * Only calls with one of these statuses.
     *
     * @param any one or several
     * @return a copy with the condition
     */
    public ListServiceCalls status(ServiceCallStatus... any) {
        return with("status", List.of(any).stream().map(ServiceCallStatus::value).toList());
    }

    /**
     * Only calls with this tag.
     *
     * @param tag the tag
     * @return a copy with the condition
     */
    public ListServiceCalls tag(String tag) {
        return with("tag", List.of(tag));
    }

    /**
     * Only calls of this name.
     *
     * @param name the name
     * @return a copy with the condition
     */
    public ListServiceCalls name(String name) {
        return with("name", List.of(name));
    }

    /**
     * Only calls with this correlation id.
     *
     * @param correlationId the id
     * @return a copy with the condition
     */
    public ListServiceCalls correlationId(String correlationId) {
        return with("correlationId", List.of(correlationId));
    }

    /**
     * Only calls that were submitted at or after an instant.
     *
     * @param from the instant
     * @return a copy with the condition
     */
    public ListServiceCalls from(Instant from) {
        return with("from", List.of(Values.format(from)));
    }

    /**
     * Only calls that were submitted before an instant.
     *
     * @param to the instant
     * @return a copy with the condition
     */
    public ListServiceCalls to(Instant to) {
        return with("to", List.of(Values.format(to)));
    }

    /**
     * The size of a page.
     *
     * @param limit how many calls
     * @return a copy with the limit
     */
    public ListServiceCalls limit(int limit) {
        return with("limit", List.of(Integer.toString(limit)));
    }

    ListServiceCalls with(String name, List<String> values) {
        Map<String, List<String>> more = new LinkedHashMap<>(query);
        more.put(name, values);
        return new ListServiceCalls(more);
    }

    Map<String, List<String>> query() {
        return query;
    }
}

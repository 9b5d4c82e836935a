// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import org.jspecify.annotations.Nullable;

/**
 * The monitor; with <code>pingUrl</code> if it was created and takes pings.
 *
 * @param monitor monitor
 * @param created Whether there was none of this id.
 * @param pingUrl The URL that its job pings, which nobody is shown again. Null if absent.
 */
public record MonitorPut(
        Monitor monitor,
        boolean created,
        @Nullable String pingUrl) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static MonitorPut fromJson(Json source) {
        return new MonitorPut(
                source.read("monitor", Monitor::fromJson),
                source.read("created", Json::asBoolean),
                source.readOptional("pingUrl", Json::asString));
    }
}
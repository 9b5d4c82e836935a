// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;

/**
 * The monitor with its new URL.
 *
 * @param monitor monitor
 * @param pingUrl The URL that its job pings, which nobody is shown again.
 */
public record MonitorRotated(
        Monitor monitor,
        String pingUrl) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static MonitorRotated fromJson(Json source) {
        return new MonitorRotated(
                source.read("monitor", Monitor::fromJson),
                source.read("pingUrl", Json::asString));
    }
}
// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;

/**
 * The monitor.
 *
 * @param monitor monitor
 */
public record MonitorAnswer(
        Monitor monitor) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static MonitorAnswer fromJson(Json source) {
        return new MonitorAnswer(
                source.read("monitor", Monitor::fromJson));
    }
}
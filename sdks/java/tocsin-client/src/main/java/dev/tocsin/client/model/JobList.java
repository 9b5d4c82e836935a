// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;
import java.util.List;

/**
 * Jobs, newest first: those that have not ended, and the newest 200 of those that ended in the last 30
 * days.
 *
 * @param jobs jobs
 */
public record JobList(
        List<Job> jobs) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static JobList fromJson(Json source) {
        return new JobList(
                source.read("jobs", json -> json.asList(Job::fromJson)));
    }
}
// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Json;

/**
 * A job.
 *
 * @param job job
 */
public record JobAnswer(
        Job job) {

    /**
     * Reads an answer. Members that this version does not know are ignored.
     *
     * @param source the object
     * @return its members
     */
    public static JobAnswer fromJson(Json source) {
        return new JobAnswer(
                source.read("job", Job::fromJson));
    }
}
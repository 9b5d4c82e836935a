// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Names a job.
 *
 * @param jobId The job's id.
 */
public record JobName(
        String jobId) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param jobId The job's id.
     * @return the request
     */
    public static JobName of(String jobId) {
        return new JobName(
                jobId);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("jobId", Json.of(jobId));
        return Json.object(sent);
    }
}
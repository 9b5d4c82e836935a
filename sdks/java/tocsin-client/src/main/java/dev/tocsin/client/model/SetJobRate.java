// Made by sdks/generate.py from docs/reference/openapi.json; change the server or the templates, then run `make docs`.
package dev.tocsin.client.model;

import dev.tocsin.client.Field;
import dev.tocsin.client.Json;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Another rate of a job.
 *
 * @param jobId The job's id.
 * @param ratePerSecond Rows a second that the job changes at most, in the whole cluster. Default 500.
 */
public record SetJobRate(
        String jobId,
        long ratePerSecond) {

    /**
     * Starts with the required members; the others are absent.
     *
     * @param jobId The job's id.
     * @param ratePerSecond Rows a second that the job changes at most, in the whole cluster. Default 500.
     * @return the request
     */
    public static SetJobRate of(String jobId, long ratePerSecond) {
        return new SetJobRate(
                jobId,
                ratePerSecond);
    }

    /**
     * The object to send: absent members stay out.
     *
     * @return the object
     */
    public Json toJson() {
        Map<String, Json> sent = new LinkedHashMap<>();
        sent.put("jobId", Json.of(jobId));
        sent.put("ratePerSecond", Json.of(ratePerSecond));
        return Json.object(sent);
    }
}
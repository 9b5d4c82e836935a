package dev.tocsin.client.error;

import dev.tocsin.client.model.BadField;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The server refused the request, or failed. The code is stable: compare it, or catch the class of the code. */
public class ApiException extends TocsinException {
    private static final long serialVersionUID = 1L;

    private final transient Problem problem;

    /**
     * Made by the client.
     *
     * @param problem what the server answered
     */
    public ApiException(Problem problem) {
        super(text(problem));
        this.problem = problem;
    }

    private static String text(Problem problem) {
        String code = problem.code().isEmpty() ? "HTTP" : problem.code();
        String text = code + " (" + problem.status() + "): " + problem.message();
        return problem.correlationId() == null ? text : text + " [correlation id " + problem.correlationId() + "]";
    }

    /**
     * Everything that the server answered.
     *
     * @return null only after this exception was serialized
     */
    public Problem problem() {
        return problem;
    }

    /**
     * The HTTP status.
     *
     * @return such as 404
     */
    public int status() {
        return problem.status();
    }

    /**
     * The code.
     *
     * @return such as TIMER_NOT_FOUND; empty if the answer was not Tocsin's, as from a proxy
     */
    public String code() {
        return problem.code();
    }

    /**
     * The server's explanation, without code and status.
     *
     * @return a sentence
     */
    public String explanation() {
        return problem.message();
    }

    /**
     * Each invalid field.
     *
     * @return empty if the error is another
     */
    public List<BadField> fields() {
        return problem.fields();
    }

    /**
     * Identifies the request in the server's log.
     *
     * @return null if the answer had none
     */
    public @Nullable String correlationId() {
        return problem.correlationId();
    }

    /**
     * The seconds of {@code Retry-After}.
     *
     * @return null if the answer had none
     */
    public @Nullable Double retryAfterSeconds() {
        return problem.retryAfterSeconds();
    }
}

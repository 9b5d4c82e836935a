package dev.tocsin.client;

/** A text is not JSON, or a JSON value is not what the program expects. */
public class JsonException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    JsonException(String message) {
        super(message);
    }
}

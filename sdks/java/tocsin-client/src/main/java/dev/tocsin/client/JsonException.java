package dev.tocsin.client;

import dev.tocsin.client.error.InvalidArgumentException;

/** A text is not JSON, a JSON value is not what the program expects, or a value can't be written as JSON. */
public class JsonException extends InvalidArgumentException {
    private static final long serialVersionUID = 1L;

    JsonException(String message) {
        super(message);
    }
}

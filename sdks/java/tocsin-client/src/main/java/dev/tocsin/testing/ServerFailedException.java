package dev.tocsin.testing;

import dev.tocsin.client.error.TocsinException;

/** The test's server did not start, or did not do what was asked. */
public class ServerFailedException extends TocsinException {
    private static final long serialVersionUID = 1L;

    ServerFailedException(String message) {
        super(message);
    }
}

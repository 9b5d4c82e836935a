package dev.tocsin.client;

import dev.tocsin.client.error.InvalidArgumentException;
import java.time.Duration;

/** Limits of one call. */
record Options(Duration timeout, int retries) {
    /** The time alone limits the retries. */
    static final int UNLIMITED = Integer.MAX_VALUE;
    /** With 30 s for a call. */
    static final Options DEFAULT = new Options(Duration.ofSeconds(30), UNLIMITED);

    Options {
        if (timeout.isZero() || timeout.isNegative()) {
            throw new InvalidArgumentException("timeout: " + timeout + " is not greater than zero");
        }
        if (retries < 0) {
            throw new InvalidArgumentException("retries: " + retries + " is negative; 0 means none");
        }
    }

    double timeoutSeconds() {
        return timeout.getSeconds() + timeout.getNano() / 1e9;
    }
}

package dev.tocsin.client;

import java.time.Duration;

/** Limits of one call. */
record Options(Duration timeout, int retries) {
    /** With 30 s for a call, and the first try and three retries. */
    static final Options DEFAULT = new Options(Duration.ofSeconds(30), 3);

    Options {
        if (timeout.isZero() || timeout.isNegative()) {
            throw new IllegalArgumentException("timeout: " + timeout + " is not greater than zero");
        }
        if (retries < 0) {
            throw new IllegalArgumentException("retries: " + retries + " is negative; 0 means none");
        }
    }

    double timeoutSeconds() {
        return timeout.toNanos() / 1e9;
    }
}

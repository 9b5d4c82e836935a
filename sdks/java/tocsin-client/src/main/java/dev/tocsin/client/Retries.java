package dev.tocsin.client;

import dev.tocsin.client.error.ApiException;
import dev.tocsin.client.error.TocsinException;
import dev.tocsin.client.error.TransportException;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.function.DoubleSupplier;

/** Whether and when a failed try is repeated; and the budget, which bounds the retries of all calls of a client. */
final class Retries {
    private static final double FIRST_DELAY_S = 0.1;
    private static final double DELAY_S_MAX = 5.0;
    /** In tenths of a retry: 20 retries while nothing succeeds, and one more for ten successes. */
    private static final int BUDGET_MAX = 200;
    private static final int RETRY_COST = 10;
    /** 500 is missing: what failed once by a defect fails again. */
    private static final Set<Integer> REPEATED_STATUSES = Set.of(408, 429, 502, 503, 504);

    private int left = BUDGET_MAX;

    /** Pays for a retry; false if too little is left. */
    synchronized boolean spend() {
        if (left < RETRY_COST) {
            return false;
        }
        left -= RETRY_COST;
        return true;
    }

    /** A try succeeded. */
    synchronized void earn() {
        left = Math.min(BUDGET_MAX, left + 1);
    }

    /** Whether the same request could succeed later. */
    static boolean isRepeated(TocsinException error) {
        return error instanceof TransportException
                || error instanceof ApiException refused && REPEATED_STATUSES.contains(refused.status());
    }

    /** Whether the request may have been executed all the same. */
    static boolean maybeDone(TocsinException error) {
        return error instanceof TransportException lost && lost.maybeDone()
                || error instanceof ApiException failed && failed.status() >= 500;
    }

    /** Seconds before the given retry, counted from 0; empty: in the time left there is none. */
    static OptionalDouble delay(int retry, Double retryAfter, double leftSeconds, DoubleSupplier random) {
        double delay = retryAfter != null
                ? retryAfter * (1 + random.getAsDouble() / 2)
                : Math.min(DELAY_S_MAX, FIRST_DELAY_S * Math.pow(2, retry)) * random.getAsDouble();
        return delay < leftSeconds ? OptionalDouble.of(delay) : OptionalDouble.empty();
    }
}

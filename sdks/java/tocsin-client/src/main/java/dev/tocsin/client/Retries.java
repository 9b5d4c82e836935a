package dev.tocsin.client;

import dev.tocsin.client.error.ApiException;
import dev.tocsin.client.error.TocsinException;
import dev.tocsin.client.error.TransportException;
import java.security.cert.CertificateException;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.function.DoubleSupplier;
import org.jspecify.annotations.Nullable;

/** Whether and when a failed try is repeated; and the budget, which bounds the retries of all calls of a client. */
final class Retries {
    private static final double FIRST_DELAY_S = 0.1;
    private static final double DELAY_S_MAX = 2.0;
    /** In tenths of a retry: 100 retries while nothing succeeds, and one more for ten calls that succeed at once. */
    private static final int BUDGET_MAX = 1_000;
    private static final int RETRY_COST = 10;
    /** Answered before anything was executed. */
    private static final Set<Integer> REFUSED_STATUSES = Set.of(408, 429);
    private static final Set<String> REFUSED_CODES =
            Set.of("NOT_READY", "REQUEST_EXPIRED", "NO_ROOM_FOR_BODY");
    /** 500 is missing: what failed once by a defect fails again. */
    private static final Set<Integer> UNCERTAIN_STATUSES = Set.of(502, 503, 504);

    private int left = BUDGET_MAX;

    /** Pays for a retry; false if too little is left. */
    synchronized boolean spend() {
        if (left < RETRY_COST) {
            return false;
        }
        left -= RETRY_COST;
        return true;
    }

    /** Retries that can be paid. */
    synchronized double left() {
        return left / (double) RETRY_COST;
    }

    /** A call succeeded after so many paid retries: they are given back. One without any earns a tenth of a retry. */
    synchronized void succeeded(int paid) {
        left = Math.min(BUDGET_MAX, left + (paid == 0 ? 1 : paid * RETRY_COST));
    }

    /** Whether the request was certainly not executed, and could be later. */
    static boolean isNeverExecuted(TocsinException error) {
        if (error instanceof ApiException refused) {
            return REFUSED_STATUSES.contains(refused.status())
                    || refused.status() == 503 && REFUSED_CODES.contains(refused.code());
        }
        return error instanceof TransportException lost && !lost.maybeDone();
    }

    /** Whether the request may have been executed all the same. */
    static boolean maybeDone(TocsinException error) {
        return error instanceof TransportException lost && lost.maybeDone()
                || error instanceof ApiException failed && failed.status() >= 500 && !isNeverExecuted(error);
    }

    /** Whether to repeat; `safe`: also what may have been executed. Another try would not change the server's certificate. */
    static boolean isRepeated(TocsinException error, boolean safe) {
        for (Throwable each = error; each != null; each = each.getCause()) {
            if (each instanceof CertificateException) {
                return false;
            }
        }
        boolean uncertain = error instanceof TransportException
                || error instanceof ApiException failed && UNCERTAIN_STATUSES.contains(failed.status());
        return isNeverExecuted(error) || safe && uncertain;
    }

    /** Seconds before the given retry, counted from 0; empty: in the time left there is none. */
    static OptionalDouble delay(int retry, @Nullable Double retryAfter, double leftSeconds, DoubleSupplier random) {
        double delay = retryAfter != null
                ? retryAfter * (1 + random.getAsDouble() / 2)
                : Math.min(DELAY_S_MAX, FIRST_DELAY_S * Math.pow(2, retry)) * random.getAsDouble();
        return delay < leftSeconds ? OptionalDouble.of(delay) : OptionalDouble.empty();
    }
}

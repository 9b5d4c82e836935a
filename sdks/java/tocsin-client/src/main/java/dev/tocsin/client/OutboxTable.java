package dev.tocsin.client;

import dev.tocsin.client.error.ApiException;
import dev.tocsin.client.error.InvalidArgumentException;
import dev.tocsin.client.error.TocsinException;
import java.time.Instant;
import java.util.Collections;
import java.util.UUID;
import java.util.regex.Pattern;

/** The table of timers to create: its statements, and what becomes of a row. Nothing here does I/O. */
record OutboxTable(String name) {
    static final String NAME = "tocsin_outbox";
    /** How many rows a round takes. */
    static final int ROWS_MAX = 250;

    private static final Pattern TABLE = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)?");
    /** How the codes of Tocsin's errors are written. Others have words there, such as Not Found. */
    private static final Pattern CODE = Pattern.compile("[A-Z][A-Z0-9_]*");
    private static final int TOO_LARGE = 413;
    private static final Object LOCK = new Object();
    private static final int COUNT_BITS = 12;
    /** Of the last row: 52 bits of its time in milliseconds, and 12 of a counter, which flows over into the time. */
    private static long lastOrder;

    OutboxTable {
        if (!TABLE.matcher(name).matches()) {
            throw new InvalidArgumentException(
                    "table: '" + name + "' is not a table's name, such as tocsin_outbox or jobs.tocsin_outbox");
        }
    }

    /** A UUID of version 7 that is greater than the one before, so that rows are read as they were written. */
    static String newRowId(long nowMs) {
        long order;
        synchronized (LOCK) {
            lastOrder = Math.max(nowMs << COUNT_BITS, lastOrder + 1);
            order = lastOrder;
        }
        UUID random = Place.uuid7(order >>> COUNT_BITS);
        long count = order & (1L << COUNT_BITS) - 1;
        return new UUID(random.getMostSignificantBits() & ~0xFFFL | count, random.getLeastSignificantBits()).toString();
    }

    /** Microseconds since 1970. */
    static long nowMicros() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000 + now.getNano() / 1_000;
    }

    /** What is sent for a row at that time, with what is left of its delay. InvalidArgumentException: it has no timer's JSON. */
    static Batches.Item item(String id, String request, long createdAt, long now) {
        try {
            Json body = Session.remaining(Json.parse(request), Math.max(now - createdAt, 0) / 1e6);
            return Batches.Item.ofJson(body.with("idempotencyKey", id));
        } catch (JsonException | ClassCastException | IllegalArgumentException wrong) {
            throw new InvalidArgumentException("request: is no timer's JSON (" + wrong.getMessage()
                    + "); write rows with an Outbox", wrong);
        }
    }

    /** Whether the timer would be refused again. What an operator or a new release of the server mends is not final, nor is
     * what does not concern the timer: something else answers at the URL, such as a proxy without a backend, or the URL's path is
     * wrong. */
    static boolean isFinal(TocsinException error) {
        if (error instanceof ApiException refused) {
            return isFinal(refused.status(), refused.code());
        }
        return error instanceof InvalidArgumentException;
    }

    static boolean isFinal(int status, String code) {
        if (!CODE.matcher(code).matches() || code.equals("ROUTE_NOT_FOUND")) {
            // A proxy that takes smaller bodies than Tocsin may take fewer rows at a time.
            return status == TOO_LARGE;
        }
        // There is room in a collection when the timer has fired.
        if (code.equals("COLLECTION_FULL")) {
            return false;
        }
        return status >= 400 && status < 500 && status != 401 && status != 403 && status != 408 && status != 429;
    }

    /** The table. The unique columns are no rule, but the index that finds whether a timer has an earlier row. */
    String create(Dialect dialect) {
        boolean mysql = dialect == Dialect.MYSQL;
        return "CREATE TABLE IF NOT EXISTS " + name + " (id VARCHAR(36) NOT NULL PRIMARY KEY, "
                + "namespace VARCHAR(255) NOT NULL, timer_id VARCHAR(255) NOT NULL, "
                + "request " + (mysql ? "MEDIUMTEXT" : "TEXT") + " NOT NULL, created_at BIGINT NOT NULL, "
                + "due_at BIGINT NOT NULL, dead_reason TEXT, "
                + "UNIQUE (namespace, timer_id, id))"
                + (mysql ? " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin" : "");
    }

    String insert() {
        return "INSERT INTO " + name
                + " (id, namespace, timer_id, request, created_at, due_at) VALUES (?, ?, ?, ?, ?, 0)";
    }

    /** Finds the oldest rows that are due, and that no other drain has. Of a timer's rows it is the oldest, so that they are
     * sent one after another, by however many drains. */
    private String due(Dialect dialect, int rows, String columns) {
        return "SELECT " + columns + " FROM " + name + " AS due WHERE due_at <= ? AND dead_reason IS NULL AND NOT EXISTS "
                + "(SELECT 1 FROM " + name + " AS older WHERE older.namespace = due.namespace "
                + "AND older.timer_id = due.timer_id AND older.id < due.id AND older.dead_reason IS NULL) "
                + "ORDER BY id LIMIT " + rows + (dialect == Dialect.SQLITE ? "" : " FOR UPDATE SKIP LOCKED");
    }

    /** Takes rows that are due; in MySQL, which needs another statement for it, finds and locks them. The array has PostgreSQL
     * find them once, not for each row of a plan. */
    String take(Dialect dialect, int rows) {
        if (dialect == Dialect.MYSQL) {
            return due(dialect, rows, "id, request, created_at");
        }
        String found = due(dialect, rows, "id");
        String within = dialect == Dialect.POSTGRESQL ? "= ANY (ARRAY(" + found + "))" : "IN (" + found + ")";
        return "UPDATE " + name + " SET due_at = ? WHERE id " + within + " RETURNING id, request, created_at";
    }

    String delete(Dialect dialect, int rows) {
        String from = dialect == Dialect.MYSQL
                ? "settled FROM " + name + " AS settled FORCE INDEX (PRIMARY)" : "FROM " + name;
        return "DELETE " + from + " WHERE id IN (" + marks(rows) + ")";
    }

    /** Changes rows by their ids. MySQL would read small tables as a whole, and lock rows of the program's transactions: the
     * index is named. */
    String update(Dialect dialect, String change, int rows) {
        String index = dialect == Dialect.MYSQL ? " FORCE INDEX (PRIMARY)" : "";
        return "UPDATE " + name + index + " SET " + change + " id IN (" + marks(rows) + ")";
    }

    private static String marks(int count) {
        return String.join(", ", Collections.nCopies(count, "?"));
    }
}

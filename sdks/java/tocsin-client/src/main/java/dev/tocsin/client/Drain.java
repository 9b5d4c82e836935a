package dev.tocsin.client;

import dev.tocsin.client.error.InvalidArgumentException;
import dev.tocsin.client.error.TocsinException;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Creates the timers of an {@link Outbox} whose transactions are committed, oldest first, and deletes their rows.
 *
 * <p>Any number of drains may run at once, in one process or several. A timer's rows are sent one after another. What the server
 * refuses for good stays in the table with its {@code dead_reason}.
 *
 * <p>Each row is sent with its id as idempotency key, so that a row that is sent again, after a crash or a lost answer, fires
 * once. Idempotency keys expire 24 hours after the timer has ended: a row that is sent again later fires twice.
 */
public final class Drain {
    /** For so long nobody else takes the rows of a round. A drain that is killed leaves them waiting for it. */
    private static final long LEASE_US = 60_000_000;
    /** How long one request may take, with its retries: shorter than the lease. */
    private static final Duration REQUEST_TIMEOUT = Duration.ofSeconds(15);
    /** Between the tries of a row that is refused for the moment: half of its age, within these bounds. */
    private static final long PAUSE_US_MIN = 1_000_000;
    private static final long PAUSE_US_MAX = 60_000_000;
    /** After a round that failed: doubled up to the longest with each further one. */
    private static final long FIRST_PAUSE_MS = 1_000;
    private static final long PAUSE_MS_MAX = 30_000;
    private static final int DOUBLINGS_MAX = 10;
    private static final int REASON_LENGTH_MAX = 1_000;
    private static final System.Logger LOG = System.getLogger(Drain.class.getName());

    private final AsyncTocsinClient client;
    private final Connect connect;
    private final OutboxTable table;

    /** Where connections come from, such as {@code dataSource::getConnection}. */
    @FunctionalInterface
    public interface Connect {
        /**
         * Opens a connection; it is closed after each transaction, which returns it to its pool.
         *
         * @return a connection that nobody else uses meanwhile
         * @throws SQLException if there is none
         */
        Connection connect() throws SQLException;
    }

    /**
     * Drains the table {@code tocsin_outbox}.
     *
     * @param client creates the timers
     * @param connect where connections to the database come from
     */
    public Drain(TocsinClient client, Connect connect) {
        this(client, connect, OutboxTable.NAME);
    }

    /**
     * Drains another table.
     *
     * @param client creates the timers
     * @param connect where connections to the database come from
     * @param table its name, after that of its schema if need be
     * @throws InvalidArgumentException if that is no name of a table
     */
    public Drain(TocsinClient client, Connect connect, String table) {
        this(client.async(), connect, table);
    }

    Drain(AsyncTocsinClient client, Connect connect, String table) {
        this.client = client.withTimeout(REQUEST_TIMEOUT).inCallingThread();
        this.connect = connect;
        this.table = new OutboxTable(table);
    }

    /**
     * Creates the table if it isn't there.
     *
     * @throws SQLException the database's
     */
    public void createTable() throws SQLException {
        transaction((connection, dialect) -> {
            try (Statement statement = connection.createStatement()) {
                return statement.execute(table.create(dialect));
            }
        });
    }

    /**
     * Creates the timers of at most 250 rows. What the server or the network does is not thrown.
     *
     * @return what became of them
     * @throws SQLException the database's
     */
    public Drained once() throws SQLException {
        long dueAt = OutboxTable.nowMicros() + LEASE_US;
        List<Row> rows = transaction((connection, dialect) -> take(connection, dialect, dueAt));
        Round round = new Round();
        if (!rows.isEmpty()) {
            try {
                round.send(rows);
            } catch (CancellationException interrupted) {
                stop(rows, round, dueAt, interrupted);
                throw interrupted;
            }
            transaction((connection, dialect) -> settle(connection, dialect, round, dueAt));
        }
        return new Drained(round.created.size(), round.dead.size(), round.waiting.size(), round.unavailable);
    }

    /** Settles a round that an interrupt ended: other drains, and this one after a restart, need not wait for the lease. */
    private void stop(List<Row> rows, Round round, long dueAt, CancellationException interrupted) {
        boolean again = Thread.interrupted(); // drivers may refuse to work in an interrupted thread
        try {
            round.leave(rows);
            transaction((connection, dialect) -> settle(connection, dialect, round, dueAt));
        } catch (SQLException | RuntimeException failed) {
            interrupted.addSuppressed(failed);
        } finally {
            if (again) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /**
     * Drains until the thread is interrupted. While there are rows it makes no pauses; while the server or the database is away,
     * they grow up to 30 s.
     *
     * @param every how often to look for rows when there were none
     * @throws InterruptedException when the thread is interrupted
     */
    public void run(Duration every) throws InterruptedException {
        int failures = 0;
        while (!Thread.interrupted()) {
            Drained drained = new Drained(0, 0, 0, null);
            Exception failure;
            try {
                drained = once();
                failure = drained.unavailable();
            } catch (SQLException | RuntimeException failed) {
                if (failed instanceof CancellationException && Thread.interrupted()) {
                    break;
                }
                failure = failed;
            }
            if (failure != null) {
                long pauseMs = Math.min(FIRST_PAUSE_MS << Math.min(failures, DOUBLINGS_MAX), PAUSE_MS_MAX);
                failures++;
                LOG.log(System.Logger.Level.WARNING, "outbox not drained, next try in " + pauseMs / 1e3 + " s: " + failure);
                Thread.sleep(pauseMs);
                continue;
            }
            failures = 0;
            if (drained.dead() > 0) {
                LOG.log(System.Logger.Level.ERROR, "outbox rows dead: " + drained.dead() + "; see dead_reason in the table");
            } else if (drained.created() + drained.waiting() == 0) {
                Thread.sleep(every.toMillis());
            }
        }
        throw new InterruptedException();
    }

    /**
     * Drains in a daemon thread, until that is interrupted.
     *
     * @param every how often to look for rows when there were none
     * @return the thread
     */
    public Thread start(Duration every) {
        Thread thread = new Thread(() -> {
            try {
                run(every);
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }, "tocsin-outbox");
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private record Row(String id, String request, long createdAt) {}

    /** What is done in a transaction. */
    private interface Part<R> {
        R run(Connection connection, Dialect dialect) throws SQLException;
    }

    private <R> R transaction(Part<R> part) throws SQLException {
        try (Connection connection = connect.connect()) {
            boolean autoCommit = connection.getAutoCommit();
            connection.setAutoCommit(false);
            boolean committed = false;
            try {
                R result = part.run(connection, Dialect.of(connection));
                connection.commit();
                committed = true;
                return result;
            } finally {
                if (!committed) {
                    connection.rollback();
                }
                // A pool may give the connection to others.
                connection.setAutoCommit(autoCommit);
            }
        }
    }

    private List<Row> take(Connection connection, Dialect dialect, long dueAt) throws SQLException {
        List<Row> rows = new ArrayList<>();
        try (PreparedStatement take = connection.prepareStatement(table.take(dialect, OutboxTable.ROWS_MAX))) {
            int last = 1;
            if (dialect != Dialect.MYSQL) {
                take.setLong(last++, dueAt);
            }
            take.setLong(last, OutboxTable.nowMicros());
            try (ResultSet found = take.executeQuery()) {
                while (found.next()) {
                    rows.add(new Row(found.getString(1), found.getString(2), found.getLong(3)));
                }
            }
        }
        if (dialect == Dialect.MYSQL) {
            List<String> ids = rows.stream().map(Row::id).toList();
            execute(connection, ids, table.update(dialect, "due_at = ? WHERE", ids.size()), dueAt);
        }
        rows.sort(Comparator.comparing(Row::id));
        return rows;
    }

    /** Deletes what is created, marks what is dead, and leaves the rest to the next round, after a pause if the server
     * answered. */
    private boolean settle(Connection connection, Dialect dialect, Round round, long dueAt) throws SQLException {
        execute(connection, round.created, table.delete(dialect, round.created.size()));
        for (Map.Entry<String, String> dead : round.dead.entrySet()) {
            String update = table.update(dialect, "dead_reason = ? WHERE", 1);
            execute(connection, List.of(dead.getKey()), update, dead.getValue());
        }
        long next = OutboxTable.nowMicros();
        if (round.unavailable == null && !round.ended) {
            next += Math.min(Math.max((next - round.oldest) / 2, PAUSE_US_MIN), PAUSE_US_MAX);
        }
        // Another drain has them if the lease was over: it is not to be disturbed.
        String update = table.update(dialect, "due_at = ? WHERE due_at = ? AND", round.waiting.size());
        execute(connection, round.waiting, update, next, dueAt);
        return true;
    }

    /** Executes a statement for rows, of which there may be none. */
    private static void execute(Connection connection, List<String> ids, String sql, Object... parameters)
            throws SQLException {
        if (ids.isEmpty()) {
            return;
        }
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < parameters.length; i++) {
                statement.setObject(i + 1, parameters[i]);
            }
            for (int i = 0; i < ids.size(); i++) {
                statement.setString(parameters.length + i + 1, ids.get(i));
            }
            statement.executeUpdate();
        }
    }

    /** What the server made of the rows that were taken, as far as it was asked. */
    private final class Round {
        private final List<String> created = new ArrayList<>();
        private final Map<String, String> dead = new LinkedHashMap<>();
        private final List<String> waiting = new ArrayList<>();
        private long oldest = Long.MAX_VALUE;
        private @Nullable TocsinException unavailable;
        /** Whether it ended before the server had answered. */
        private boolean ended;

        /** In requests that are small enough. */
        void send(List<Row> rows) {
            List<Row> chunk = new ArrayList<>();
            List<Batches.Item> items = new ArrayList<>();
            int sizeBytes = Batches.ENVELOPE_BYTES;
            for (Row row : rows) {
                Batches.Item item;
                try {
                    item = OutboxTable.item(row.id, row.request, row.createdAt, OutboxTable.nowMicros());
                } catch (InvalidArgumentException wrong) {
                    add(row, wrong);
                    continue;
                }
                if (!chunk.isEmpty() && sizeBytes + item.sizeBytes() > Batches.BYTES_MAX) {
                    request(chunk, items);
                    chunk = new ArrayList<>();
                    items = new ArrayList<>();
                    sizeBytes = Batches.ENVELOPE_BYTES;
                }
                chunk.add(row);
                items.add(item);
                sizeBytes += item.sizeBytes();
            }
            if (!chunk.isEmpty()) {
                request(chunk, items);
            }
        }

        /** What has no answer waits, as do those that the server may have created: sent again, they fire once. */
        void leave(List<Row> rows) {
            ended = true;
            rows.stream().map(Row::id)
                    .filter(id -> !created.contains(id) && !dead.containsKey(id) && !waiting.contains(id)).forEach(waiting::add);
        }

        private void request(List<Row> rows, List<Batches.Item> items) {
            if (unavailable != null) {
                rows.forEach(row -> add(row, unavailable));
                return;
            }
            Batches.Outcome outcome = Run.join(client.timers().createItems(items));
            TocsinException whole = outcome.whole();
            if (whole != null && OutboxTable.isFinal(whole) && rows.size() > 1) {
                // One of them spoils the request: each gets an answer of its own.
                IntStream.range(0, rows.size())
                        .forEach(i -> request(Collections.singletonList(rows.get(i)), List.of(items.get(i))));
                return;
            }
            if (whole != null && !OutboxTable.isFinal(whole)) {
                unavailable = whole;
            }
            for (int i = 0; i < rows.size(); i++) {
                add(rows.get(i), outcome.results().get(i).error());
            }
        }

        private void add(Row row, @Nullable TocsinException error) {
            if (error == null) {
                created.add(row.id);
            } else if (OutboxTable.isFinal(error)) {
                String reason = String.valueOf(error.getMessage());
                dead.put(row.id, reason.substring(0, Math.min(reason.length(), REASON_LENGTH_MAX)));
            } else {
                waiting.add(row.id);
                oldest = Math.min(oldest, row.createdAt);
            }
        }
    }
}

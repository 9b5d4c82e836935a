package dev.tocsin.receiver;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.Objects;
import java.util.regex.Pattern;

/**
 * Remembers firings and their answers in a table, in the transaction that does the work: both are there, or neither. For
 * PostgreSQL and SQLite.
 */
public final class Dedup {
    private static final Pattern TABLE = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)?");

    private final Connect connect;
    private final String table;

    /** Where connections come from, such as {@code dataSource::getConnection}. */
    @FunctionalInterface
    public interface Connect {
        /**
         * Opens a connection; it is closed afterwards, which returns it to its pool.
         *
         * @return a connection that nobody else uses meanwhile
         * @throws SQLException if there is none
         */
        Connection connect() throws SQLException;
    }

    /** What is done once. */
    @FunctionalInterface
    public interface Work {
        /**
         * Does the work.
         *
         * @param connection in a transaction; do not commit it
         * @return the answer to store; {@code retry} rolls back
         * @throws Exception rolls back
         */
        Answer work(Connection connection) throws Exception;
    }

    /**
     * With the table {@code tocsin_firings}.
     *
     * @param connect where connections come from
     */
    public Dedup(Connect connect) {
        this(connect, "tocsin_firings");
    }

    /**
     * With another table.
     *
     * @param connect where connections come from
     * @param table its name, after that of its schema if need be
     * @throws IllegalArgumentException if that is no name of a table
     */
    public Dedup(Connect connect, String table) {
        if (!TABLE.matcher(table).matches()) {
            throw new IllegalArgumentException(
                    "table: '" + table + "' is not a table's name, such as tocsin_firings or jobs.tocsin_firings");
        }
        this.connect = connect;
        this.table = table;
    }

    /**
     * Creates the table if it isn't there.
     *
     * @throws SQLException if the database refuses
     */
    public void createTable() throws SQLException {
        inTransaction(connection -> execute(
                connection,
                "CREATE TABLE IF NOT EXISTS " + table
                        + " (webhook_id TEXT PRIMARY KEY, answer TEXT, handled_at BIGINT NOT NULL)"));
    }

    /**
     * Removes the firings that were handled before. Keep them for longer than a timer's retries can take, and than the age of
     * a backup of the server that you might restore: seven days suit most.
     *
     * @param olderThan how long they are kept
     * @return how many were removed
     * @throws SQLException if the database refuses
     */
    public int forget(Duration olderThan) throws SQLException {
        long before = Instant.now().minus(olderThan).getEpochSecond();
        return inTransaction(
                connection -> execute(connection, "DELETE FROM " + table + " WHERE handled_at < " + before));
    }

    /**
     * Calls the work with a connection, and commits what it did together with its answer. A repetition of the firing
     * gets this
     * answer again, without the work.
     *
     * @param firing that is handled
     * @param work what to do once; {@code retry} and exceptions roll back
     * @return the work's answer, or the stored one
     * @throws Exception the work's, or an SQLException
     */
    public Answer once(Firing firing, Work work) throws Exception {
        return inTransaction(connection -> {
            String insert = "INSERT INTO " + table + " (webhook_id, handled_at) VALUES (?, "
                    + Instant.now().getEpochSecond() + ") ON CONFLICT DO NOTHING";
            if (execute(connection, insert, firing.webhookId()) == 0) {
                return stored(connection, firing);
            }
            Answer answer = Objects.requireNonNull(
                    work.work(connection), "the work returned null; return done(), rescheduleAt(), retry() or fail()");
            if (answer.retries()) {
                connection.rollback();
            } else {
                String update = "UPDATE " + table + " SET answer = ? WHERE webhook_id = ?";
                execute(connection, update, answer.toText(), firing.webhookId());
            }
            return answer;
        });
    }

    private Answer stored(Connection connection, Firing firing) throws SQLException {
        String select = "SELECT answer FROM " + table + " WHERE webhook_id = ?";
        try (PreparedStatement statement = connection.prepareStatement(select)) {
            statement.setString(1, firing.webhookId());
            try (ResultSet rows = statement.executeQuery()) {
                if (!rows.next() || rows.getString(1) == null) {
                    throw new IllegalStateException(
                            "firing " + firing.webhookId() + " has no answer: something else wrote " + table);
                }
                return Answer.fromText(rows.getString(1));
            }
        }
    }

    /** What is done in a transaction; `E` is what it throws beside SQLException. */
    private interface Transaction<T, E extends Exception> {
        T run(Connection connection) throws SQLException, E;
    }

    private <T, E extends Exception> T inTransaction(Transaction<T, E> transaction) throws SQLException, E {
        try (Connection connection = connect.connect()) {
            boolean autoCommit = connection.getAutoCommit();
            connection.setAutoCommit(false);
            boolean committed = false;
            try {
                T result = transaction.run(connection);
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

    private static int execute(Connection connection, String sql, String... parameters) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < parameters.length; i++) {
                statement.setString(i + 1, parameters[i]);
            }
            return statement.executeUpdate();
        }
    }
}

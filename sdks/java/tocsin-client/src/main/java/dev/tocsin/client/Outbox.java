package dev.tocsin.client;

import dev.tocsin.client.error.InvalidArgumentException;
import dev.tocsin.client.model.CreateTimer;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;

/**
 * Writes timers as rows in a transaction that your program has open. A {@link Drain} creates them after the commit. For
 * PostgreSQL, MySQL and SQLite.
 */
public final class Outbox {
    private final Connection connection;
    private final OutboxTable table;

    private Outbox(Connection connection, OutboxTable table) {
        this.connection = connection;
        this.table = table;
    }

    /**
     * Writes in the transaction that the connection has open, whatever opened it. With Spring it is that of
     * {@code DataSourceUtils.getConnection(dataSource)}, with Hibernate that of {@code session.doWork}.
     *
     * @param connection not in autocommit mode
     * @return writes with the connection, to the table {@code tocsin_outbox}
     * @throws SQLException the database's
     * @throws InvalidArgumentException if each statement of the connection is a transaction of its own
     */
    public static Outbox in(Connection connection) throws SQLException {
        return in(connection, OutboxTable.NAME);
    }

    /**
     * The same with another table.
     *
     * @param connection not in autocommit mode
     * @param table its name, after that of its schema if need be
     * @return writes with the connection
     * @throws SQLException the database's
     * @throws InvalidArgumentException if that is no name of a table, or each statement is a transaction of its own
     */
    public static Outbox in(Connection connection, String table) throws SQLException {
        if (connection.getAutoCommit()) {
            throw new InvalidArgumentException("connection: it is in autocommit mode; the row and your work need one "
                    + "transaction that both are in: connection.setAutoCommit(false)");
        }
        return new Outbox(connection, new OutboxTable(table));
    }

    /**
     * Writes a timer to create as a row. If the transaction commits, a drain creates the timer; if it rolls back, there was none.
     *
     * @param timer without an idempotency key; its delay counts from this call
     * @return the row's id, which is the timer's idempotency key
     * @throws SQLException the database's
     * @throws InvalidArgumentException if the timer can't be sent
     */
    public String create(CreateTimer timer) throws SQLException {
        String request = request(timer);
        long now = OutboxTable.nowMicros();
        String id = OutboxTable.newRowId(now / 1_000);
        try (PreparedStatement insert = connection.prepareStatement(table.insert())) {
            insert.setString(1, id);
            insert.setString(2, timer.namespace());
            insert.setString(3, timer.id());
            insert.setString(4, request);
            insert.setLong(5, now);
            insert.executeUpdate();
        }
        return id;
    }

    static String request(CreateTimer timer) {
        if (timer.idempotencyKey().isPresent()) {
            throw new InvalidArgumentException("idempotencyKey: is the id of the row; leave it out");
        }
        Batches.Item.of(timer);
        return timer.toJson().toString();
    }
}

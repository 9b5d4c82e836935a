package dev.tocsin.receiver;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** Transactions of JDBC, each on a connection of its own. */
public final class JdbcTransactions implements Transactions<Connection> {
    private final Connect connect;

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

    /**
     * Transactions on new connections.
     *
     * @param connect where connections come from
     */
    public JdbcTransactions(Connect connect) {
        this.connect = connect;
    }

    @Override
    public <R> R run(Function<Connection, R> work) throws SQLException {
        try (Connection connection = connect.connect()) {
            boolean autoCommit = connection.getAutoCommit();
            connection.setAutoCommit(false);
            boolean committed = false;
            try {
                R result = work.apply(connection);
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

    @Override
    public int update(Connection connection, String sql, Object... parameters) throws SQLException {
        try (PreparedStatement statement = prepared(connection, sql, parameters)) {
            return statement.executeUpdate();
        }
    }

    @Override
    public List<@Nullable String> query(Connection connection, String sql, Object... parameters) throws SQLException {
        try (PreparedStatement statement = prepared(connection, sql, parameters);
                ResultSet rows = statement.executeQuery()) {
            List<String> found = new ArrayList<>();
            while (rows.next()) {
                found.add(rows.getString(1));
            }
            return found;
        }
    }

    private static PreparedStatement prepared(Connection connection, String sql, Object... parameters) throws SQLException {
        PreparedStatement statement = connection.prepareStatement(sql);
        for (int i = 0; i < parameters.length; i++) {
            statement.setObject(i + 1, parameters[i]);
        }
        return statement;
    }
}

package dev.tocsin.client;

import dev.tocsin.client.error.InvalidArgumentException;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.Locale;

/** What the SQL of the databases that an outbox can be in differs by. */
enum Dialect {
    POSTGRESQL,
    MYSQL,
    SQLITE;

    /** InvalidArgumentException: that of the connection is another one. */
    static Dialect of(Connection connection) throws SQLException {
        String name = connection.getMetaData().getDatabaseProductName();
        return switch (name.toLowerCase(Locale.ROOT)) {
            case "postgresql" -> POSTGRESQL;
            case "mysql", "mariadb" -> MYSQL;
            case "sqlite" -> SQLITE;
            default -> throw new InvalidArgumentException(
                    "connection: an outbox can't be in " + name + "; use PostgreSQL, MySQL or SQLite");
        };
    }
}

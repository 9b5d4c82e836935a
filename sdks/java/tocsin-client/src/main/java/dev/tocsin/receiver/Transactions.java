package dev.tocsin.receiver;

import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The transactions of your program, in which {@link Dedup} remembers firings: those of a framework, or {@link JdbcTransactions}.
 *
 * @param <T> what the work gets, such as a connection, a {@code JdbcTemplate} or an {@code EntityManager}
 */
public interface Transactions<T> {
    /**
     * Runs work in a transaction: commits if it returns, rolls back if it throws.
     *
     * @param work to run once
     * @param <R> what it returns
     * @return the same
     * @throws Exception the work's, or the database's
     */
    <R> R run(Function<T, R> work) throws Exception;

    /**
     * Executes a statement that changes rows, in the transaction.
     *
     * @param transaction that the work got
     * @param sql with a question mark for each parameter
     * @param parameters texts and numbers
     * @return the number of changed rows
     * @throws Exception the database's
     */
    int update(T transaction, String sql, Object... parameters) throws Exception;

    /**
     * Executes a query, in the transaction.
     *
     * @param transaction that the work got
     * @param sql with a question mark for each parameter
     * @param parameters texts and numbers
     * @return the first column of each row, a text or null
     * @throws Exception the database's
     */
    List<@Nullable String> query(T transaction, String sql, Object... parameters) throws Exception;
}

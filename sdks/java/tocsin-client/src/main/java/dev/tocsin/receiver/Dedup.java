package dev.tocsin.receiver;

import dev.tocsin.client.error.InvalidArgumentException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Objects;
import java.util.regex.Pattern;

/**
 * Remembers firings and their answers in a table, in the transaction that does the work: both are there, or neither. For
 * PostgreSQL and SQLite.
 *
 * @param <T> what the work gets: a connection with {@link JdbcTransactions}
 */
public final class Dedup<T> {
    private static final Pattern TABLE = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)?");

    private final Transactions<T> transactions;
    private final String table;

    /**
     * What is done once.
     *
     * @param <T> what it gets
     */
    @FunctionalInterface
    public interface Work<T> {
        /**
         * Does the work.
         *
         * @param transaction do not commit it
         * @return the answer to store; {@code retry} rolls back
         * @throws Exception rolls back
         */
        Answer work(T transaction) throws Exception;
    }

    /**
     * With the table {@code tocsin_firings}.
     *
     * @param transactions of your program
     */
    public Dedup(Transactions<T> transactions) {
        this(transactions, "tocsin_firings");
    }

    /**
     * With another table.
     *
     * @param transactions of your program
     * @param table its name, after that of its schema if need be
     * @throws InvalidArgumentException if that is no name of a table
     */
    public Dedup(Transactions<T> transactions, String table) {
        if (!TABLE.matcher(table).matches()) {
            throw new InvalidArgumentException(
                    "table: '" + table + "' is not a table's name, such as tocsin_firings or jobs.tocsin_firings");
        }
        this.transactions = transactions;
        this.table = table;
    }

    /**
     * Creates the table if it isn't there.
     *
     * @throws Exception the database's
     */
    public void createTable() throws Exception {
        run(transaction -> transactions.update(
                transaction,
                "CREATE TABLE IF NOT EXISTS " + table
                        + " (webhook_id TEXT PRIMARY KEY, answer TEXT, handled_at BIGINT NOT NULL)"));
    }

    /**
     * Removes the firings that were handled before. Keep them for longer than a timer's retries can take, and than the age of
     * a backup of the server that you might restore: seven days suit most.
     *
     * @param olderThan how long they are kept
     * @return how many were removed
     * @throws Exception the database's
     */
    public int forget(Duration olderThan) throws Exception {
        long before = Instant.now().minus(olderThan).getEpochSecond();
        return run(transaction ->
                transactions.update(transaction, "DELETE FROM " + table + " WHERE handled_at < ?", before));
    }

    /**
     * Calls the work in a transaction, and commits what it did together with its answer. A repetition of the firing gets this
     * answer again, without the work. {@code retry}, {@code fail} and exceptions roll back and store nothing: when the timer is
     * replayed, the work is tried again.
     *
     * @param firing that is handled
     * @param work what to do once
     * @return the work's answer, or the stored one
     * @throws Exception the work's, or the database's
     */
    public Answer once(Firing firing, Work<? super T> work) throws Exception {
        try {
            return run(transaction -> {
                String insert = "INSERT INTO " + table + " (webhook_id, handled_at) VALUES (?, ?) ON CONFLICT DO NOTHING";
                if (transactions.update(transaction, insert, firing.webhookId(), Instant.now().getEpochSecond()) == 0) {
                    return stored(transaction, firing);
                }
                Answer answer = Objects.requireNonNull(
                        work.work(transaction), "the work returned null; return done(), rescheduleAt(), retry() or fail()");
                if (!answer.isDone()) {
                    throw new NotDone(answer);
                }
                String update = "UPDATE " + table + " SET answer = ? WHERE webhook_id = ?";
                transactions.update(transaction, update, answer.toText(), firing.webhookId());
                return answer;
            });
        } catch (NotDone rolledBack) {
            return rolledBack.answer;
        }
    }

    private Answer stored(T transaction, Firing firing) throws Exception {
        String select = "SELECT answer FROM " + table + " WHERE webhook_id = ?";
        List<String> answers = transactions.query(transaction, select, firing.webhookId());
        if (answers.isEmpty() || answers.get(0) == null) {
            throw new IllegalStateException(
                    "firing " + firing.webhookId() + " has no answer: something else wrote " + table);
        }
        return Answer.fromText(answers.get(0));
    }

    /** What is done in a transaction. */
    private interface Part<T, R> {
        R run(T transaction) throws Exception;
    }

    /** Lets everything through a function that throws nothing checked, also where a framework wraps what it throws. */
    private <R> R run(Part<T, R> part) throws Exception {
        Exception[] thrown = {null};
        try {
            return transactions.run(transaction -> {
                try {
                    return part.run(transaction);
                } catch (Exception failed) {
                    thrown[0] = failed;
                    throw failed instanceof RuntimeException unchecked ? unchecked : new RollBack(failed);
                }
            });
        } catch (Exception failed) {
            throw thrown[0] == null ? failed : thrown[0];
        }
    }

    /** Rolls a transaction back because of a checked exception. */
    private static final class RollBack extends RuntimeException {
        private static final long serialVersionUID = 1L;

        RollBack(Exception cause) {
            super(cause);
        }
    }

    /** Rolls a transaction back because of the work's answer. */
    private static final class NotDone extends RuntimeException {
        private static final long serialVersionUID = 1L;

        private final transient Answer answer;

        NotDone(Answer answer) {
            super("the work was not done", null, false, false);
            this.answer = answer;
        }
    }
}

import dev.tocsin.client.Drain;
import dev.tocsin.client.Drained;
import dev.tocsin.client.Json;
import dev.tocsin.client.Outbox;
import dev.tocsin.client.Tocsin;
import dev.tocsin.client.error.InvalidArgumentException;
import dev.tocsin.client.model.CreateTimer;
import dev.tocsin.client.model.ListTimers;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Writes rows to an outbox in transactions of JDBC, and drains them: SERVER DATABASE NAMESPACE. */
public class OutboxDatabases {
    private final String url;
    private final String namespace;

    OutboxDatabases(String url, String namespace) {
        this.url = url;
        this.namespace = namespace;
    }

    public static void main(String[] arguments) throws Exception {
        new OutboxDatabases(arguments[1], arguments[2]).run(arguments[0]);
    }

    private CreateTimer timer(String id, int payload) {
        return CreateTimer.of(namespace, id, "http://127.0.0.1:1/").delay(Duration.ofHours(1)).payload(Json.of(payload));
    }

    private void write(boolean commit, CreateTimer... timers) throws Exception {
        try (Connection connection = DriverManager.getConnection(url)) {
            try {
                Outbox.in(connection);
                throw new AssertionError("no transaction is open");
            } catch (InvalidArgumentException expected) {
                connection.setAutoCommit(false);
            }
            for (CreateTimer each : timers) {
                Outbox.in(connection).create(each);
            }
            if (commit) {
                connection.commit();
            } else {
                connection.rollback();
            }
        }
    }

    private boolean isWaiting() throws Exception {
        try (Connection connection = DriverManager.getConnection(url);
                ResultSet found = connection.createStatement()
                        .executeQuery("SELECT count(*) FROM tocsin_outbox WHERE dead_reason IS NULL")) {
            return found.next() && found.getInt(1) > 0;
        }
    }

    private void run(String server) throws Exception {
        try (var client = Tocsin.client(server).build()) {
            var drain = new Drain(client, () -> DriverManager.getConnection(url));
            drain.createTable();
            drain.createTable();
            write(true, timer("größe/17", 1), timer("größe/17", 2),
                    CreateTimer.of("none", "refused", "http://127.0.0.1:1/").delay(Duration.ofHours(1)));
            write(false, timer("never", 1));
            check(new Drained(1, 1, 0, null), drain.once());
            List<Thread> drains = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                drains.add(drain.start(Duration.ofMillis(5)));
            }
            CreateTimer[] timers = new CreateTimer[300];
            for (int n = 0; n < timers.length; n++) {
                timers[n] = timer("t" + n % 100, n);
            }
            write(true, timers);
            while (isWaiting()) {
                Thread.onSpinWait();
            }
            for (Thread each : drains) {
                each.interrupt();
                each.join();
            }
            Map<String, Long> found = new HashMap<>();
            client.timers().list(ListTimers.in(namespace)).forEach(each -> found.put(each.id(), each.payload().asLong()));
            Map<String, Long> expected = new HashMap<>(Map.of("größe/17", 2L));
            for (int n = 0; n < 100; n++) {
                expected.put("t" + n, 200L + n);
            }
            check(expected, found);
            System.out.println("drained");
        }
    }

    private static void check(Object expected, Object actual) {
        if (!expected.equals(actual)) {
            throw new AssertionError("expected " + expected + ", got " + actual);
        }
    }
}

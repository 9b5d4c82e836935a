import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.tocsin.client.Json;
import dev.tocsin.client.Tocsin;
import dev.tocsin.client.TocsinClient;
import dev.tocsin.client.error.TocsinException;
import dev.tocsin.client.model.CreateTimer;
import dev.tocsin.client.model.OnConflict;
import dev.tocsin.receiver.Answer;
import dev.tocsin.receiver.Dedup;
import dev.tocsin.receiver.Firing;
import dev.tocsin.receiver.JdbcTransactions;
import dev.tocsin.receiver.JdkHttpHandler;
import dev.tocsin.receiver.Receiver;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;

/** An order service: it reminds of the payment after a day, and cancels the order two days later. */
public class Orders {
    static final String NAMESPACE = "orders";
    static final Duration REMIND_AFTER = Duration.ofDays(1);
    static final Duration CANCEL_AFTER = Duration.ofDays(2); // after the reminder
    private static final List<String> TABLES = List.of(
            "CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, amount INTEGER NOT NULL, status TEXT NOT NULL)",
            // What a mailer sends.
            "CREATE TABLE IF NOT EXISTS mails (order_id TEXT NOT NULL, subject TEXT NOT NULL)");
    private static final System.Logger LOG = System.getLogger("orders");

    private final String database;
    private final TocsinClient tocsin;
    private final String publicUrl;
    private final Dedup<Connection> dedup;

    /** The URL is where Tocsin reaches this service. */
    Orders(String database, TocsinClient tocsin, String publicUrl) throws Exception {
        this.database = database;
        this.tocsin = tocsin;
        this.publicUrl = publicUrl;
        this.dedup = new Dedup<>(new JdbcTransactions(this::connect));
        try (Connection connection = connect()) {
            for (String table : TABLES) {
                update(connection, table);
            }
        }
        dedup.createTable();
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> env = System.getenv();
        var builder = Tocsin.client(env.getOrDefault("TOCSIN_URL", "http://127.0.0.1:8080"));
        if (env.containsKey("TOCSIN_KEY")) {
            builder = builder.key(env.get("TOCSIN_KEY"));
        }
        int port = Integer.parseInt(env.getOrDefault("PORT", "9000"));
        String publicUrl = env.getOrDefault("PUBLIC_URL", "http://127.0.0.1:" + port);
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.setExecutor(Executors.newFixedThreadPool(16));
        Receiver receiver = Receiver.of(() -> List.of(env.get("TOCSIN_SECRET").split(" ")));
        new Orders(env.getOrDefault("DATABASE", "orders.db"), builder.build(), publicUrl).serve(server, receiver);
        server.start();
    }

    void serve(HttpServer server, Receiver receiver) {
        server.createContext("/orders", this::handle);
        server.createContext("/hooks/payment", new JdkHttpHandler(receiver, this::paymentDue));
    }

    private void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            Response response;
            try {
                String[] path = exchange.getRequestURI().getPath().split("/");
                response = switch (exchange.getRequestMethod() + " " + path.length) {
                    case "POST 2" -> place(Json.parse(bodyOf(exchange)));
                    case "GET 3" -> find(path[2]);
                    case "POST 4" -> path[3].equals("pay") ? pay(path[2]) : Response.error(404, "there is no such page");
                    default -> Response.error(404, "there is no such page");
                };
            } catch (SQLException | TocsinException failed) {
                LOG.log(System.Logger.Level.ERROR, "an order failed", failed);
                response = Response.error(503, "try again later");
            }
            byte[] body = response.body.toString().getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("content-type", "application/json");
            exchange.sendResponseHeaders(response.status, body.length);
            exchange.getResponseBody().write(body);
        }
    }

    private static String bodyOf(HttpExchange exchange) throws IOException {
        return new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
    }

    private record Response(int status, Json body) {
        static Response error(int status, String message) {
            return new Response(status, Json.object().with("error", message));
        }
    }

    private Response place(Json order) throws SQLException {
        String id = order.get("id").asString();
        // The timer first: an order without one would stay open forever, a timer without an order does nothing. Whoever got no
        // answer sends the order again, and neither is made a second time.
        tocsin.timers().create(CreateTimer.of(NAMESPACE, "payment-" + id, publicUrl + "/hooks/payment")
                .delay(REMIND_AFTER).payload(Json.object().with("order", id)).onConflict(OnConflict.KEEP));
        try (Connection connection = connect()) {
            String insert = "INSERT INTO orders VALUES (?, ?, 'open') ON CONFLICT DO NOTHING";
            update(connection, insert, id, order.get("amount").asLong());
        }
        return find(id);
    }

    private Response find(String id) throws SQLException {
        try (Connection connection = connect();
                PreparedStatement select = connection.prepareStatement("SELECT amount, status FROM orders WHERE id = ?")) {
            select.setString(1, id);
            ResultSet row = select.executeQuery();
            if (!row.next()) {
                return Response.error(404, "there is no such order");
            }
            Json order = Json.object().with("id", id);
            return new Response(200, order.with("amount", row.getLong(1)).with("status", row.getString(2)));
        }
    }

    private Response pay(String id) throws SQLException {
        try (Connection connection = connect()) {
            update(connection, "UPDATE orders SET status = 'paid' WHERE id = ? AND status <> 'canceled'", id);
        }
        Response order = find(id);
        if (order.status != 200) {
            return order;
        }
        if (!order.body.get("status").asString().equals("paid")) {
            return Response.error(409, "the order is canceled");
        }
        try {
            tocsin.withTimeout(Duration.ofSeconds(2)).timers().delete(NAMESPACE, "payment-" + id);
        } catch (TocsinException failed) {
            // It has ended, or Tocsin is away: then it fires, and finds a paid order.
            LOG.log(System.Logger.Level.INFO, "the timer of order {0} was not deleted: {1}", id, failed.getMessage());
        }
        return order;
    }

    /** What is due for an order that is not paid. A payment that comes at the same time is before it or after it, not both. */
    private Answer paymentDue(Firing firing) throws Exception {
        String id = firing.payload().get("order").asString();
        return dedup.once(firing, transaction -> {
            if (update(transaction, "UPDATE orders SET status = 'reminded' WHERE id = ? AND status = 'open'", id) > 0) {
                update(transaction, "INSERT INTO mails VALUES (?, ?)", id, "Please pay your order");
                return Answer.rescheduleAt(firing.executeAt().plus(CANCEL_AFTER));
            }
            if (update(transaction, "UPDATE orders SET status = 'canceled' WHERE id = ? AND status = 'reminded'", id) > 0) {
                update(transaction, "INSERT INTO mails VALUES (?, ?)", id, "Your order is canceled");
            }
            return Answer.done();
        });
    }

    /** Its transactions begin with the right to write: two of them wait for each other, and neither fails. */
    Connection connect() throws SQLException {
        return DriverManager.getConnection("jdbc:sqlite:" + database + "?busy_timeout=30000&transaction_mode=IMMEDIATE");
    }

    private static int update(Connection connection, String sql, Object... parameters) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < parameters.length; i++) {
                statement.setObject(i + 1, parameters[i]);
            }
            return statement.executeUpdate();
        }
    }
}

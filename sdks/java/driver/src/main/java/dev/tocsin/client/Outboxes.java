package dev.tocsin.client;

import dev.tocsin.client.model.CreateTimer;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The outbox in a database of a scenario, and what it makes of the vectors. */
final class Outboxes {
    private Outboxes() {}

    static Json run(AsyncTocsinClient client, Path database, String verb, Json given) throws SQLException {
        String url = "jdbc:sqlite:" + database;
        Drain drain = new Drain(client, () -> DriverManager.getConnection(url), OutboxTable.NAME);
        drain.createTable();
        if (verb.equals("drain")) {
            Drained drained = drain.once();
            return Json.object().with("created", drained.created()).with("dead", drained.dead())
                    .with("waiting", drained.waiting()).with("unavailable", drained.unavailable() != null);
        }
        try (Connection connection = DriverManager.getConnection(url)) {
            if (verb.equals("rows")) {
                return rows(connection);
            }
            connection.setAutoCommit(false);
            List<Json> ids = new ArrayList<>();
            for (CreateTimer timer : Reflection.timers(given.get("timers"))) {
                ids.add(Json.of(Outbox.in(connection).create(timer)));
            }
            if (given.has("rollback")) {
                connection.rollback();
            } else {
                connection.commit();
            }
            return Json.array(ids, id -> id);
        }
    }

    private static Json rows(Connection connection) throws SQLException {
        List<Json> rows = new ArrayList<>();
        try (Statement statement = connection.createStatement();
                ResultSet found = statement.executeQuery("SELECT timer_id, dead_reason FROM tocsin_outbox ORDER BY id")) {
            while (found.next()) {
                rows.add(Json.object().with("timerId", found.getString(1)).with("deadReason", found.getString(2)));
            }
        }
        return Json.array(rows, row -> row);
    }

    static Json vector(Json given) {
        if (given.has("statement")) {
            OutboxTable table = new OutboxTable(OutboxTable.NAME);
            Dialect dialect = Dialect.valueOf(given.get("dialect").asString().toUpperCase(Locale.ROOT));
            return Json.object().with("text", switch (given.get("statement").asString()) {
                case "table" -> table.create(dialect);
                case "insert" -> table.insert();
                case "take" -> table.take(dialect, OutboxTable.ROWS_MAX);
                default -> table.delete(dialect, 2);
            });
        }
        if (given.has("timer")) {
            CreateTimer timer = Reflection.timers(Json.array(given.get("timer"))).get(0);
            return Json.object().with("namespace", timer.namespace()).with("timerId", timer.id())
                    .with("request", Json.parse(Outbox.request(timer)));
        }
        if (given.has("send")) {
            Json row = given.get("send");
            Batches.Item item = OutboxTable.item(row.get("id").asString(), row.get("request").toString(),
                    row.get("createdAt").asLong(), given.get("now").asLong());
            return Json.object().with("timer", item.body());
        }
        Json refused = given.get("refused");
        boolean dead = OutboxTable.isFinal(refused.get("status").asInt(), refused.get("code").asString());
        return Json.object().with("dead", dead);
    }
}

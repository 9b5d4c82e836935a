import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import dev.tocsin.client.Json;
import dev.tocsin.client.model.CreateNamespace;
import dev.tocsin.client.model.TimerStatus;
import dev.tocsin.receiver.Receiver;
import dev.tocsin.testing.SignedRequest;
import dev.tocsin.testing.TestServer;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Three days of orders in a moment: the service, and a Tocsin whose clock is moved. */
class OrdersTest {
    private static final String SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

    @TempDir
    static Path folder;

    private static TestServer tocsin;
    private static HttpServer web;
    private static Orders orders;
    private static String url;

    @BeforeAll
    static void start() throws Exception {
        tocsin = TestServer.start();
        tocsin.client().namespaces().create(CreateNamespace.of(Orders.NAMESPACE).secret(SECRET));
        web = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        url = "http://127.0.0.1:" + web.getAddress().getPort();
        orders = new Orders(folder.resolve("orders.db").toString(), tocsin.client(), url);
        orders.serve(web, Receiver.of(SECRET));
        web.start();
    }

    @AfterAll
    static void stop() {
        web.stop(0);
        tocsin.close();
    }

    @Test
    void unpaidOrderIsCanceledAfterReminder() throws Exception {
        for (int sent = 1; sent <= 2; sent++) {
            HttpResponse<String> placed = post("/orders", "{\"id\": \"17\", \"amount\": 4200}");
            assertEquals("{\"id\":\"17\",\"amount\":4200,\"status\":\"open\"}", placed.body());
        }
        tocsin.advance(Duration.ofHours(25));
        assertEquals("reminded", status("17"));
        tocsin.advance(Duration.ofHours(48));
        assertEquals("canceled", status("17"));
        assertEquals(List.of("Please pay your order", "Your order is canceled"), mails("17"));
        assertEquals(409, post("/orders/17/pay", "").statusCode());
    }

    @Test
    void paidOrderStaysPaid() throws Exception {
        post("/orders", "{\"id\": \"18\", \"amount\": 990}");
        tocsin.advance(Duration.ofHours(25));
        assertEquals(200, post("/orders/18/pay", "").statusCode());
        assertEquals(TimerStatus.CANCELED, tocsin.client().timers().get(Orders.NAMESPACE, "payment-18").status());
        tocsin.advance(Duration.ofHours(48));
        assertEquals("paid", status("18"));
        assertEquals(List.of("Please pay your order"), mails("18"));
    }

    @Test
    void repeatedFiringRemindsOnce() throws Exception {
        post("/orders", "{\"id\": \"19\", \"amount\": 500}");
        var firing = SignedRequest.firing("payment-19", Instant.now(), Json.object().with("order", "19"));
        SignedRequest signed = SignedRequest.sign(firing, SECRET);
        for (int sent = 1; sent <= 2; sent++) {
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url + "/hooks/payment"));
            signed.headers().forEach(request::header);
            String answer = send(request.POST(BodyPublishers.ofByteArray(signed.body()))).body();
            assertTrue(answer.contains("nextExecuteAt"), answer);
        }
        assertEquals(List.of("Please pay your order"), mails("19"));
    }

    private HttpResponse<String> post(String path, String body) throws Exception {
        return send(HttpRequest.newBuilder(URI.create(url + path)).POST(BodyPublishers.ofString(body)));
    }

    private String status(String id) throws Exception {
        String body = send(HttpRequest.newBuilder(URI.create(url + "/orders/" + id))).body();
        return Json.parse(body).get("status").asString();
    }

    private static HttpResponse<String> send(HttpRequest.Builder request) throws Exception {
        return HttpClient.newHttpClient().send(request.build(), BodyHandlers.ofString());
    }

    private List<String> mails(String id) throws Exception {
        List<String> subjects = new ArrayList<>();
        try (Connection connection = orders.connect();
                PreparedStatement select = connection.prepareStatement("SELECT subject FROM mails WHERE order_id = ?")) {
            select.setString(1, id);
            for (ResultSet rows = select.executeQuery(); rows.next(); ) {
                subjects.add(rows.getString(1));
            }
        }
        return subjects;
    }
}

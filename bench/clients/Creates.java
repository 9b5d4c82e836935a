import com.sun.management.OperatingSystemMXBean;
import dev.tocsin.client.Json;
import dev.tocsin.client.Tocsin;
import dev.tocsin.client.TocsinClient;
import dev.tocsin.client.model.CreateTimer;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/** Single creates by the Java SDK beside java.net.http, which it uses: see bench/clients/__init__.py. */
class Creates {
    interface Create {
        void run(int number) throws Exception;
    }

    private static final String CALLBACK = "http://127.0.0.1:9/";
    private static final AtomicInteger NUMBERS = new AtomicInteger();
    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    static Create bySdk(TocsinClient client) {
        return number -> client.timers().create(CreateTimer.of("default", "sdk-" + number, CALLBACK)
                .delay(Duration.ofHours(1)).payload(Json.object().with("order", number).with("amount", 4200)));
    }

    static Create bare(String url, HttpClient client) {
        URI uri = URI.create(url + "/api/v1/timers/create");
        return number -> {
            String body = "{\"namespace\":\"default\",\"id\":\"bare-" + number + "\",\"callbackUrl\":\"" + CALLBACK
                    + "\",\"delay\":\"1h\",\"payload\":{\"order\":" + number + ",\"amount\":4200},\"idempotencyKey\":\""
                    + UUID.randomUUID() + "\"}";
            HttpRequest request = HttpRequest.newBuilder(uri)
                    .timeout(Duration.ofSeconds(15))
                    .header("accept", "application/json")
                    .header("user-agent", "tocsin-client-java/0.1.0")
                    .header("tocsin-first-try", "1")
                    .header("content-type", "application/json")
                    .POST(HttpRequest.BodyPublishers.ofString(body))
                    .build();
            HttpResponse<byte[]> answer = client.send(request, HttpResponse.BodyHandlers.ofByteArray());
            if (answer.statusCode() != 200) {
                throw new IllegalStateException(new String(answer.body()));
            }
        };
    }

    static void creates(Create create, int count, int inFlight, ExecutorService threads) throws Exception {
        Callable<Void> work = () -> {
            for (int made = 0; made < count / inFlight; made++) {
                create.run(NUMBERS.incrementAndGet());
            }
            return null;
        };
        List<Callable<Void>> all = new ArrayList<>();
        for (int i = 0; i < inFlight; i++) {
            all.add(work);
        }
        for (Future<Void> each : threads.invokeAll(all)) {
            each.get();
        }
    }

    public static void main(String[] args) throws Exception {
        int warmUp = Integer.parseInt(args[1]);
        int rounds = Integer.parseInt(args[2]);
        int each = Integer.parseInt(args[3]);
        int inFlight = Integer.parseInt(args[4]);
        HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        ExecutorService threads = Executors.newFixedThreadPool(inFlight);
        List<String> results = new ArrayList<>();
        try (TocsinClient client = Tocsin.client(args[0]).build()) {
            Map<String, Create> ways = Map.of("sdk", bySdk(client), "bare", bare(args[0], http));
            for (Create create : ways.values()) {
                creates(create, warmUp, inFlight, threads);
            }
            for (int round = 0; round < rounds; round++) {
                List<String> result = new ArrayList<>();
                for (String name : round % 2 == 0 ? List.of("sdk", "bare") : List.of("bare", "sdk")) {
                    long began = SYSTEM.getProcessCpuTime();
                    creates(ways.get(name), each, inFlight, threads);
                    double us = (SYSTEM.getProcessCpuTime() - began) / 1e3 / each;
                    result.add("\"" + name + "\": " + us);
                }
                results.add("{" + String.join(", ", result) + "}");
            }
        }
        threads.shutdown();
        System.out.println("[" + String.join(", ", results) + "]");
    }
}

package dev.tocsin.client;

import dev.tocsin.client.error.TocsinException;
import dev.tocsin.receiver.Answer;
import dev.tocsin.receiver.Dedup;
import dev.tocsin.receiver.Firing;
import dev.tocsin.receiver.JdbcTransactions;
import dev.tocsin.receiver.Receiver;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;

/**
 * Runs the scenarios' steps with this SDK: `sdks/harness.py` sends them, and checks what this program reports.
 *
 * <p>TOCSIN_SDK_CONTROL is the harness's URL; with TOCSIN_SDK_MODE=async the asynchronous client is used.
 */
public final class Driver {
    private static final boolean ASYNC = "async".equals(System.getenv("TOCSIN_SDK_MODE"));
    private static final List<String> CAN =
            List.of("audit", "batcher", "calls", "cancel", "dedup", "keys", "outbox", "receiver", "routing", "schedules");
    /** Steps that name a timer, schedule or service call instead of sending an object. */
    private static final List<String> NAMES =
            List.of("namespace", "timerId", "scheduleId", "serviceCallId", "tag", "keyId", "jobId", "name", "match",
                    "destination", "id");

    private final Map<String, AsyncTocsinClient> clients = new HashMap<>();
    private final Observed observed = new Observed();
    private final Path folder;
    private String scenario = "";

    private Driver(Path folder) {
        this.folder = folder;
    }

    /** Asks for steps until there are no more. */
    public static void main(String[] arguments) throws Exception {
        System.setProperty("java.util.logging.config.class", Silence.class.getName()); // scenarios cause what is logged
        HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        HttpRequest.Builder next = HttpRequest.newBuilder(URI.create(System.getenv("TOCSIN_SDK_CONTROL") + "/next"));
        Driver driver = new Driver(Files.createTempDirectory("tocsin-driver-"));
        Json outcome = Json.object().with("hello", Json.object()
                .with("language", "java").with("can", Json.array(CAN, Json::of)));
        Json step;
        while (true) {
            HttpRequest request = next.POST(HttpRequest.BodyPublishers.ofString(outcome.toString())).build();
            step = Json.parse(http.send(request, HttpResponse.BodyHandlers.ofString()).body());
            if (step.has("done")) {
                break;
            }
            outcome = driver.run(step);
        }
        driver.clients.values().forEach(AsyncTocsinClient::close);
        for (Path each : Files.list(driver.folder).toList()) {
            Files.delete(each);
        }
        Files.delete(driver.folder);
        step.get("failures").asList().forEach(each -> System.out.println(each.asString()));
        System.out.println(step.get("summary").asString());
        System.exit(step.get("failures").asList().isEmpty() ? 0 : 1);
    }

    /** No logs. */
    public static final class Silence {
        /** Called by java.util.logging. */
        public Silence() {
            java.util.logging.LogManager.getLogManager().reset();
        }
    }

    /** The outcome of a step. */
    private Json run(Json step) {
        Json given = step.has("with") ? step.get("with") : Json.object();
        String[] parts = step.get("do").asString().split("\\.");
        try {
            if (!String.valueOf(step.readOptional("scenario", Json::asString)).equals(scenario)) {
                clients.values().forEach(AsyncTocsinClient::close);
                clients.clear();
                observed.taken();
                scenario = String.valueOf(step.readOptional("scenario", Json::asString));
            }
            Json value;
            if (parts[0].equals("tries")) {
                value = observed.taken();
            } else if (parts[0].equals("vectors")) {
                value = Vectors.run(parts[1], given);
            } else if (step.get("do").asString().equals("receiver.handle")) {
                value = receive(given);
            } else if (parts[0].equals("outbox")) {
                value = Outboxes.run(clientOf(step), folder.resolve(given.get("database").asString()), parts[1], given);
            } else {
                value = call(clientOf(step), parts[0], parts[1], given, step);
            }
            return Json.object().with("value", value);
        } catch (Exception | Error error) {
            return Json.object().with("error", failure(error));
        }
    }

    /** One for each client that its scenario wants, none of an earlier scenario. */
    private AsyncTocsinClient clientOf(Json step) {
        return clients.computeIfAbsent(step.get("client").toString(), wanted -> {
            Json options = step.get("client");
            ClientBuilder builder = Tocsin.client(options.get("url").asString());
            builder.key(options.readOptional("key", Json::asString));
            builder.onTry(ended -> {
                observed.record(ended);
                if (options.has("onTry")) {
                    throw new IllegalStateException("the hook of the scenario");
                }
            });
            if (options.has("timeout")) {
                builder.timeout(Duration.ofNanos((long) (options.get("timeout").asDouble() * 1e9)));
            }
            if (options.has("retries")) {
                builder.retries(options.get("retries").asInt());
            }
            return (options.has("routing") ? builder.routeToOwners() : builder).buildAsync();
        });
    }

    /** Runs one step against a server. */
    private static Json call(AsyncTocsinClient async, String family, String verb, Json given, Json step) throws Exception {
        if (verb.equals("batcher")) {
            return Creates.batched(async, Reflection.timers(given.get("items")));
        }
        if (verb.equals("createEach")) {
            return Creates.each(async, ASYNC, Reflection.timers(given.get("timers")), given.get("concurrency").asInt());
        }
        if (verb.equals("run")) {
            return Creates.monitored(async, ASYNC, given);
        }
        Object client = ASYNC ? async : new TocsinClient(async);
        Object part = family.equals("calls")
                ? invoke(client, "calls", given.get("tenantId").asString()) : invoke(client, family);
        boolean waits = verb.equals("wait");
        Method method = Reflection.method(part.getClass(), waits ? "await" : verb);
        List<Object> arguments = new ArrayList<>();
        if (verb.equals("createMany")) {
            arguments.add(Reflection.timers(given.get("timers")));
        } else if (method.getParameterCount() > 0 && method.getParameterTypes()[0] != String.class) {
            arguments.add(Reflection.read(method.getParameterTypes()[0], given));
        } else {
            NAMES.stream().filter(given::has).forEach(each -> arguments.add(given.get(each).asString()));
        }
        if (waits) {
            Double seconds = given.readOptional("timeoutSeconds", Json::asDouble);
            arguments.add(seconds == null ? null : Duration.ofNanos((long) (seconds * 1e9)));
        }
        Thread caller = Thread.currentThread();
        CompletableFuture<Void> interrupt = new CompletableFuture<>();
        if (step.has("cancelAfterMs") && !ASYNC) {
            CompletableFuture.delayedExecutor(step.get("cancelAfterMs").asInt(), TimeUnit.MILLISECONDS).execute(() -> {
                if (interrupt.complete(null)) {
                    caller.interrupt();
                }
            });
        }
        Object result;
        try {
            result = method.invoke(part, arguments.toArray());
            if (result instanceof CompletableFuture<?> future) {
                if (step.has("cancelAfterMs")) {
                    CompletableFuture.delayedExecutor(step.get("cancelAfterMs").asInt(), TimeUnit.MILLISECONDS)
                            .execute(() -> future.cancel(true));
                }
                result = future.join();
            }
        } finally {
            interrupt.complete(null);
            Thread.interrupted();
        }
        return listed(result, given.has("pages") && given.get("pages").asBoolean());
    }

    private static Object invoke(Object target, String name, Object... arguments) throws Exception {
        return Reflection.method(target.getClass(), name).invoke(target, arguments);
    }

    /** All elements of a list, or its pages; anything else as it is. */
    private static Json listed(Object result, boolean byPage) {
        List<Object> found = new ArrayList<>();
        if (result instanceof Pages<?> pages) {
            (byPage ? pages.pages() : pages).forEach(found::add);
        } else if (result instanceof AsyncPages<?> pages) {
            (byPage ? pages.forEachPage(found::add) : pages.forEach(found::add)).join();
        } else {
            return Reflection.write(result);
        }
        return Json.object().with(byPage ? "pages" : "items", Reflection.write(found));
    }

    /** Runs a request through a receiver. */
    private Json receive(Json given) throws Exception {
        List<Firing> seen = new ArrayList<>();
        List<Firing> worked = new ArrayList<>();
        Receiver receiver = Vectors.receiver(given);
        Map<String, String> headers = new HashMap<>();
        given.get("request").get("headers").asList()
                .forEach(each -> headers.put(each.asList().get(0).asString(), each.asList().get(1).asString()));
        byte[] body = Base64.getDecoder().decode(given.get("request").get("body").asString());
        String database = given.readOptional("dedup", Json::asString);
        Dedup<Connection> dedup = new Dedup<>(new JdbcTransactions(
                () -> DriverManager.getConnection("jdbc:sqlite:" + folder.resolve(database))));
        Answer response = receiver.handle(headers, body, firing -> {
            seen.add(firing);
            if (database == null) {
                worked.add(firing);
                return wanted(given, firing);
            }
            dedup.createTable();
            return dedup.once(firing, connection -> {
                worked.add(firing);
                return wanted(given, firing);
            });
        });
        return Json.object().with("status", response.status()).with("headers", Json.object(response.headers(), Json::of))
                .with("body", response.body()).with("handled", !worked.isEmpty())
                .with("firing", seen.isEmpty() ? Json.NULL : Vectors.shown(seen.get(0)))
                .with("firings", Json.array(seen, Vectors::shown));
    }

    private static Answer wanted(Json given, Firing firing) {
        boolean own = given.has("answers") && given.get("answers").has(firing.timerId());
        return Vectors.answer(own ? given.get("answers").get(firing.timerId()) : given.get("answer"));
    }

    /** An error as the harness compares it. */
    static Json failure(Throwable thrown) {
        Throwable error = thrown;
        while ((error instanceof CompletionException || error instanceof InvocationTargetException)
                && error.getCause() != null) {
            error = error.getCause();
        }
        if (error instanceof TocsinException known) {
            return Vectors.failure(known);
        }
        String kind = error instanceof CancellationException ? "Canceled" : error instanceof Vectors.UnknownStep
                ? "UnknownStep" : "Crash";
        StringWriter trace = new StringWriter();
        error.printStackTrace(new PrintWriter(trace));
        return Json.object().with("classes", Json.array(Json.of(kind))).with("message", trace.toString());
    }
}

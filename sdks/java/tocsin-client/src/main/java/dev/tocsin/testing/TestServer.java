package dev.tocsin.testing;

import dev.tocsin.client.Json;
import dev.tocsin.client.Tocsin;
import dev.tocsin.client.TocsinClient;
import dev.tocsin.client.Values;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * {@code tocsin dev} on a free port, with an empty folder of its own. One serves a class of tests; it starts in about a
 * second.
 *
 * <p>The program is the environment's {@code TOCSIN_BIN}, else {@code tocsin} on the PATH, else {@code uvx tocsin}.
 */
public final class TestServer implements AutoCloseable {
    private static final Pattern READY = Pattern.compile("serves on (http://\\S+)");
    private static final int START_S_MAX = 120;
    private static final int STOP_S_MAX = 30;
    /** Of the request that moves the clock: days of callbacks are answered meanwhile. */
    private static final Duration ADVANCE_MAX = Duration.ofMinutes(10);

    private final Path folder;
    private final Process process;
    private final String url;

    private TestServer(List<String> flags) throws IOException {
        folder = Files.createTempDirectory("tocsin-");
        List<String> command = new ArrayList<>(program());
        command.addAll(List.of("dev", "--port", "0", "--data-dir", folder.resolve("data").toString()));
        command.addAll(flags);
        Path log = folder.resolve("log");
        process = new ProcessBuilder(command).redirectError(log.toFile()).start();
        url = readyUrl(process);
        if (url == null) {
            String text = Files.readString(log);
            close();
            throw new ServerFailedException(String.join(" ", command) + " did not start: " + text);
        }
    }

    /**
     * Starts a server.
     *
     * @param flags of {@code tocsin dev} beside those for folder and port
     * @return when it answers
     * @throws ServerFailedException if it ended instead; the message has its log
     */
    public static TestServer start(String... flags) {
        try {
            return new TestServer(List.of(flags));
        } catch (IOException failed) {
            throw new UncheckedIOException("the server can't be started", failed);
        }
    }

    /** Null: it ended, or was too slow. */
    private static @Nullable String readyUrl(Process process) throws IOException {
        CompletableFuture<Void> ready = new CompletableFuture<>();
        ready.orTimeout(START_S_MAX, TimeUnit.SECONDS).exceptionally(tooSlow -> {
            process.destroyForcibly();
            return null;
        });
        BufferedReader output = process.inputReader();
        for (String line = output.readLine(); line != null; line = output.readLine()) {
            Matcher found = READY.matcher(line);
            if (found.find()) {
                ready.complete(null);
                return found.group(1).replaceAll("/+$", "");
            }
        }
        ready.complete(null);
        return null;
    }

    /**
     * Where the server answers.
     *
     * @return its URL, without a slash at the end
     */
    public String url() {
        return url;
    }

    /**
     * A client of this server.
     *
     * @return a client to close
     */
    public TocsinClient client() {
        return Tocsin.client(url).build();
    }

    /**
     * What the server's clock shows.
     *
     * @return an instant
     */
    public Instant now() {
        return clock("get", Json.object()).read("now", Values::toInstant);
    }

    /**
     * Moves the clock from one due instant to the next until so much time has passed. Returns when everything that was
     * due has
     * been answered and stored.
     *
     * @param by how far
     * @return the number of instants
     * @throws ServerFailedException if something came to no end
     */
    public int advance(Duration by) {
        return clock("advance", Json.object().with("by", Values.toJson(by))).read("steps", Json::asInt);
    }

    private Json clock(String operation, Json body) {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url + "/api/v1/dev/clock/" + operation))
                .header("content-type", "application/json")
                .timeout(ADVANCE_MAX)
                .POST(HttpRequest.BodyPublishers.ofString(body.toString()))
                .build();
        try {
            HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
            HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
            if (response.statusCode() != 200) {
                throw new ServerFailedException(response.body());
            }
            return Json.parse(response.body());
        } catch (IOException failed) {
            throw new UncheckedIOException("the server's clock does not answer", failed);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new ServerFailedException("interrupted while the server's clock moved");
        }
    }

    /** Ends the server and removes its data. */
    @Override
    public void close() {
        process.destroy();
        try {
            if (!process.waitFor(STOP_S_MAX, TimeUnit.SECONDS)) {
                process.destroyForcibly().waitFor();
            }
        } catch (InterruptedException interrupted) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path each : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(each);
            }
        } catch (IOException failed) {
            throw new UncheckedIOException("the server's folder can't be removed", failed);
        }
    }

    private static List<String> program() {
        String named = System.getenv("TOCSIN_BIN");
        if (named != null && !named.isEmpty()) {
            return List.of(named);
        }
        for (List<String> each : List.of(List.of("tocsin"), List.of("uvx", "tocsin"))) {
            for (String directory : System.getenv().getOrDefault("PATH", "").split(File.pathSeparator)) {
                if (Files.isExecutable(Path.of(directory, each.get(0)))) {
                    return each;
                }
            }
        }
        throw new ServerFailedException("there is no program `tocsin`: install it, or name it in TOCSIN_BIN");
    }
}

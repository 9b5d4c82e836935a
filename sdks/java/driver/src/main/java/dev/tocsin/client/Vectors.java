package dev.tocsin.client;

import dev.tocsin.client.error.ApiException;
import dev.tocsin.client.error.InvalidArgumentException;
import dev.tocsin.client.error.TocsinException;
import dev.tocsin.client.error.TransportException;
import dev.tocsin.receiver.Answer;
import dev.tocsin.receiver.Firing;
import dev.tocsin.receiver.Receiver;
import dev.tocsin.receiver.Signatures;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;

/** What this SDK makes of the cases in `sdks/vectors`, by the file's name. */
final class Vectors {
    private Vectors() {}

    /** The step is one that this driver does not have. */
    static final class UnknownStep extends RuntimeException {
        private static final long serialVersionUID = 1L;

        UnknownStep(String step) {
            super(step);
        }
    }

    static Json run(String name, Json given) throws Exception {
        return switch (name) {
            case "placement" -> placed(given);
            case "signatures" -> signed(given);
            case "signing" -> Json.object().with("signature", Signatures.sign(
                    given.get("secrets").asList(Json::asString), given.get("webhookId").asString(),
                    given.get("timestamp").asLong(), bytes(given.get("body"))));
            case "instants" -> Json.object().with("text", Values.format(given.read("text", Values::toInstant)));
            case "durations" -> duration(given);
            case "answers" -> answered(given);
            case "errors" -> failure(replyOf(given).error());
            case "retries" -> delayed(given);
            case "firings" -> fired(given);
            case "batches" -> batched(given);
            case "budget" -> budgeted(given);
            case "tries" -> Json.object().with("line", new Try(
                    given.get("operation").asString(), given.get("number").asInt(), given.readOptional("status", Json::asInt),
                    given.readOptional("code", Json::asString), given.readOptional("error", Json::asString),
                    given.get("seconds").asDouble(), given.readOptional("pauseSeconds", Json::asDouble)).toString());
            case "outbox" -> Outboxes.vector(given);
            case "keys" -> Json.object().with("key", Access.key(given.get("key").asString()));
            case "urls" -> Json.object().with("base", Access.url(given.get("url").asString()));
            default -> throw new UnknownStep("vectors." + name);
        };
    }

    private static Json placed(Json given) {
        Place place = new Place(given.get("namespace").asString(), given.get("id").asString());
        int shard = place.shard(given.get("numShards").asInt(), given.get("totalShards").asInt());
        return Json.object().with("timerUuid", place.uuid().toString()).with("shardId", shard);
    }

    static Receiver receiver(Json given) {
        Receiver receiver = given.has("unsigned") && given.get("unsigned").asBoolean()
                ? Receiver.unsigned() : Receiver.of(secrets(given.get("secrets")).toArray(String[]::new));
        Double seconds = given.readOptional("toleranceSeconds", Json::asDouble);
        receiver = seconds == null ? receiver : receiver.tolerance(Duration.ofNanos((long) (seconds * 1e9)));
        String now = given.readOptional("now", Json::asString);
        return now == null ? receiver : receiver.clock(Clock.fixed(Values.parseInstant(now), ZoneOffset.UTC));
    }

    private static List<String> secrets(Json given) {
        return given.isString() ? List.of(given.asString()) : given.asList(Json::asString);
    }

    private static Json signed(Json given) {
        Map<String, String> headers = given.get("headers").asMap(Json::asString);
        boolean[] reached = {false};
        Answer answer = receiver(given).handle(headers, bytes(given.get("body")), firing -> {
            reached[0] = true;
            return Answer.done();
        });
        // Signed bodies that are no callbacks are refused after their signature was accepted.
        return reached[0] || answer.body().contains("is not the callback")
                ? Json.object().with("valid", true) : Json.object().with("error", answer.body());
    }

    private static Json fired(Json given) {
        Firing[] read = {null};
        Receiver.unsigned().handle(given.get("headers").asMap(Json::asString), bytes(given.get("body")), firing -> {
            read[0] = firing;
            return Answer.done();
        });
        return read[0] == null ? Json.object().with("error", "refused") : shown(read[0]);
    }

    private static Json batched(Json given) {
        List<Json> firings = new ArrayList<>();
        Map<String, String> headers = given.get("headers").asMap(Json::asString);
        Answer answer = Receiver.unsigned().handle(headers, bytes(given.get("body")), firing -> {
            firings.add(shown(firing));
            return answer(given.get("answers").get(firing.timerId()));
        });
        return firings.isEmpty() ? Json.object().with("error", answer.body()) : Json.object().with("status", answer.status())
                .with("body", Json.parse(answer.body())).with("firings", Json.array(firings, each -> each));
    }

    /** A firing as the harness compares it. */
    static Json shown(Firing firing) {
        Map<String, Json> shown = new LinkedHashMap<>(Reflection.write(firing).asMap());
        shown.remove("headers");
        shown.remove("body");
        return Json.object(shown);
    }

    private static Json budgeted(Json given) {
        Retries budget = new Retries();
        return Json.object().with("results", Json.array(given.get("events").asList(), event -> {
            Json result = Json.object();
            if (event.has("retries")) {
                int allowed = 0;
                for (int i = 0; i < event.get("retries").asInt(); i++) {
                    allowed += budget.spend() ? 1 : 0;
                }
                result = result.with("allowed", allowed);
            } else {
                for (int i = 0; i < event.get("successes").asInt(); i++) {
                    budget.succeeded(event.get("paid").asInt());
                }
            }
            return result.with("left", budget.left());
        }));
    }

    private static Json duration(Json given) {
        return given.has("text")
                ? Json.object().with("microseconds", given.read("text", Values::toDuration).toNanos() / 1000)
                : Json.object().with("text", Values.format(Duration.ofNanos(given.get("microseconds").asLong() * 1000)));
    }

    private static Json answered(Json given) {
        Map<String, String> headers = Map.of("webhook-id", "x", "webhook-timestamp", "1");
        Answer answer = Receiver.unsigned().handle(headers, new byte[0], firing -> answer(given.get("answer")));
        Json shown = Json.object().with("status", answer.status()).with("headers", Json.object(answer.headers(), Json::of));
        boolean json = answer.headers().getOrDefault("content-type", "").contains("json");
        return json ? shown.with("body", Json.parse(answer.body())) : shown;
    }

    /** The answer that a scenario's handler gives. */
    static Answer answer(Json wanted) {
        Map.Entry<String, Json> only = wanted.asMap().entrySet().iterator().next();
        Json given = only.getValue();
        switch (only.getKey()) {
            case "done":
                return Answer.done();
            case "rescheduleAt":
                return given.has("payload")
                        ? Answer.rescheduleAt(given.read("at", Values::toInstant), given.get("payload"))
                        : Answer.rescheduleAt(given.read("at", Values::toInstant));
            case "retry":
                Double after = given.readOptional("after", Json::asDouble);
                return after == null ? Answer.retry() : Answer.retry(Duration.ofNanos((long) (after * 1e9)));
            case "fail":
                return Answer.fail(given.get("reason").asString());
            default:
                throw new IllegalStateException(given.asString());
        }
    }

    private static Json delayed(Json given) {
        OptionalDouble delay = Retries.delay(
                given.get("attempt").asInt(), given.readOptional("retryAfter", Json::asDouble),
                given.get("leftSeconds").asDouble(), () -> given.get("random").asDouble());
        return delay.isPresent()
                ? Json.object().with("delaySeconds", delay.getAsDouble()) : Json.object().with("error", "give up");
    }

    private static Reply replyOf(Json given) {
        Json body = given.get("body");
        byte[] bytes = body.isString() ? bytes(body) : body.toString().getBytes(StandardCharsets.UTF_8);
        return new Reply(given.get("status").asInt(), given.get("headers").asMap(Json::asString), bytes);
    }

    static byte[] bytes(Json text) {
        return text.asString().getBytes(StandardCharsets.UTF_8);
    }

    /** An error as the harness compares it. */
    static Json failure(TocsinException error) {
        Map<String, Json> known = new LinkedHashMap<>();
        List<Json> classes = new ArrayList<>();
        // JsonException is this language's.
        Class<?> first = error instanceof JsonException ? InvalidArgumentException.class : error.getClass();
        for (Class<?> each = first; each != RuntimeException.class; each = each.getSuperclass()) {
            String name = each.getSimpleName().replaceAll("Exception$", "");
            classes.add(Json.of(List.of("Tocsin", "Api", "Transport").contains(name) ? name + "Error" : name));
        }
        known.put("classes", Json.array(classes, each -> each));
        known.put("message", Json.of(error.getMessage()));
        if (error instanceof TransportException lost) {
            known.put("maybeDone", Json.of(lost.maybeDone()));
        }
        if (error instanceof ApiException api) {
            known.put("status", Json.of(api.status()));
            known.put("code", Json.of(api.code()));
            known.put("message", Json.of(api.explanation()));
            known.put("fields", Json.array(api.fields(), Reflection::write));
            known.put("correlationId", Json.of(api.correlationId()));
            known.put("retryAfter", api.retryAfterSeconds() == null ? Json.NULL : Json.of(api.retryAfterSeconds()));
        }
        known.values().removeIf(each -> each.isNull() || each.isString() && each.asString().isEmpty());
        return Json.object(known);
    }
}

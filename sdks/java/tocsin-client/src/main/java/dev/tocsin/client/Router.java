package dev.tocsin.client;

import dev.tocsin.client.error.ApiException;
import dev.tocsin.client.error.TocsinException;
import java.lang.System.Logger;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.DoubleSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Which node owns a timer. The map is read when a write needs it, and again as soon as something contradicts it. A wrong
 * answer costs time, never correctness: any node forwards.
 */
final class Router {
    private static final Logger LOG = System.getLogger("dev.tocsin.client");
    private static final double RENEWED_EVERY_S = 30.0;
    private static final double RENEWAL_JITTER = 0.2;
    /** After a sign that the map is wrong it is read again, at most this often. */
    private static final double RENEWALS_APART_S = 1.0;
    /** So long a node that failed gets no requests. */
    private static final double AVOIDED_FOR_S = 5.0;
    private static final Set<Integer> NOT_SHOWN = Set.of(400, 403, 404);

    /** The base URL for each shard, null where only the client's own serves; and each namespace's number of shards. */
    private record OwnerMap(int totalShards, List<@Nullable String> urls, Map<String, Integer> numShards) {}

    private final String base;
    private final DoubleSupplier monotonic;
    private final DoubleSupplier random;
    private final Map<String, Double> avoided = new HashMap<>();
    private @Nullable OwnerMap map;
    private @Nullable String etag;
    private double due = Double.NEGATIVE_INFINITY;
    private double readAt = Double.NEGATIVE_INFINITY;
    private boolean reading;
    private boolean enabled = true;

    Router(String base, DoubleSupplier monotonic, DoubleSupplier random) {
        this.base = base;
        this.monotonic = monotonic;
        this.random = random;
    }

    /** The URL of the node to send this write to; `read` makes one short try that does not throw for statuses. */
    CompletableFuture<String> baseFor(Place place, Function<Call, CompletableFuture<Reply>> read) {
        synchronized (this) {
            if (!enabled || reading || monotonic.getAsDouble() < due) {
                return CompletableFuture.completedFuture(urlOf(place));
            }
            reading = true;
        }
        return renew(read).handle((done, error) -> {
            synchronized (this) {
                reading = false;
                if (error != null && !(Run.unwrapped(error) instanceof TocsinException)) {
                    throw new java.util.concurrent.CompletionException(Run.unwrapped(error));
                }
                return urlOf(place);
            }
        });
    }

    /** By the present map: the owner's URL, or the client's own where no owner is known or it failed recently. */
    synchronized String urlOf(Place place) {
        if (!enabled || map == null || !map.numShards.containsKey(place.namespace())) {
            return base;
        }
        String url = map.urls.get(shardOf(place));
        boolean failed = url != null && avoided.getOrDefault(url, Double.NEGATIVE_INFINITY) > monotonic.getAsDouble();
        return url == null || failed ? base : url;
    }

    private int shardOf(Place place) {
        return place.shard(map.numShards.get(place.namespace()), map.totalShards);
    }

    /** What became of a write that was sent to this node; null: no answer arrived. */
    synchronized void observe(String asked, @Nullable Reply reply) {
        boolean failed = reply == null || reply.status() == 503;
        boolean stale = failed || "1".equals(reply.headers().get("tocsin-forwarded"));
        if (failed && !asked.equals(base)) {
            avoided.put(asked, monotonic.getAsDouble() + AVOIDED_FOR_S);
        }
        if (stale && (!asked.equals(base) || reply != null)) {
            due = Math.min(due, Math.max(monotonic.getAsDouble(), readAt + RENEWALS_APART_S));
        }
    }

    /** Switches routing off if the server stores timers elsewhere than this version reckons. */
    synchronized void check(Place place, long shardId) {
        if (enabled && map != null && map.numShards.containsKey(place.namespace()) && shardOf(place) != shardId) {
            disable("the server stores timers in other shards than this version expects");
        }
    }

    private void disable(String reason) {
        enabled = false;
        LOG.log(Logger.Level.WARNING, "owner routing is off: {0}; all requests go to {1}", reason, base);
    }

    private CompletableFuture<Void> renew(Function<Call, CompletableFuture<Reply>> read) {
        Map<String, String> condition;
        synchronized (this) {
            readAt = monotonic.getAsDouble();
            due = readAt + RENEWALS_APART_S;
            condition = etag == null ? Map.of() : Map.of("if-none-match", etag);
        }
        Call view = Call.of(Operation.GET_CLUSTER, null).query(Map.of("view", List.of("owners"))).headers(condition);
        Call names = Call.of(Operation.LIST_NAMESPACES, Json.object());
        return read.apply(view).thenCompose(owners -> read.apply(names).thenAccept(listed -> use(owners, listed)));
    }

    private synchronized void use(Reply owners, Reply listed) {
        double spread = 1 + RENEWAL_JITTER * (2 * random.getAsDouble() - 1);
        if (NOT_SHOWN.contains(owners.status())) {
            ApiException reason = owners.error();
            disable("the owners of shards can't be read: " + reason.getMessage());
        } else if (owners.status() < 400 && listed.status() < 400) {
            Map<String, Integer> numbers = new HashMap<>();
            listed.read(found -> found.get("namespaces").asList())
                    .forEach(each -> numbers.put(each.get("name").asString(), each.get("numShards").asInt()));
            if (owners.status() == 304 && map != null) {
                map = new OwnerMap(map.totalShards, map.urls, numbers);
            } else {
                map = owners.read(found -> mapOf(found, numbers));
                etag = owners.headers().get("etag");
            }
            due = monotonic.getAsDouble() + RENEWED_EVERY_S * spread;
        }
    }

    /** Nodes that are dead, leaving or skewed, or whose URL is not theirs alone, are asked through the client's own URL. */
    private static OwnerMap mapOf(Json view, Map<String, Integer> numShards) {
        List<Json> nodes = view.get("nodes").asList();
        List<String> given = new ArrayList<>();
        nodes.forEach(node -> given.add(node.readOptional("apiUrl", Json::asString)));
        List<String> urls = new ArrayList<>();
        for (int i = 0; i < nodes.size(); i++) {
            Json node = nodes.get(i);
            String url = given.get(i);
            boolean serves = url != null && !url.isEmpty() && Collections.frequency(given, url) == 1
                    && node.get("alive").asBoolean() && !node.get("leaving").asBoolean() && !node.get("skewed").asBoolean();
            urls.add(serves ? Access.withoutSlash(url) : null);
        }
        List<String> owners = new ArrayList<>();
        view.get("owners").asList().forEach(each -> owners.add(each.isNull() ? null : urls.get(each.asInt())));
        return new OwnerMap(view.get("totalShards").asInt(), owners, numShards);
    }
}

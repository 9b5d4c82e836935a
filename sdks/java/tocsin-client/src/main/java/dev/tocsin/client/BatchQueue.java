package dev.tocsin.client;

import dev.tocsin.client.model.Timer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** Which waiting timers go into the next request: by owner, once there are enough or the first has waited long enough. */
final class BatchQueue {
    private static final int ITEMS_PER_REQUEST = 500;
    private static final double LINGER_S = 0.005;
    private static final int REQUESTS_PER_OWNER = 2;
    private static final int WAITING_MAX = 10_000;

    /** A timer that waits, and who waits for it. */
    record Entry(Batches.Item item, CompletableFuture<Timer> waiter, double addedAt) {}

    /** The timers of a request to send now. */
    record Taken(String owner, List<Entry> entries) {}

    /** The timers for one node. */
    private static final class Lane {
        Deque<Entry> waiting = new ArrayDeque<>();
        int requests;
    }

    /** How many timers of one name wait for which node. */
    private record Queued(String owner, int count) {}

    private final Map<String, Lane> lanes = new LinkedHashMap<>();
    /** Timers in requests: two requests with the same one could take effect in either order. */
    private final Set<Place> inFlight = new HashSet<>();
    /** Where the timers of a name wait. The owner can change meanwhile: a later one that waited elsewhere could be sent first. */
    private final Map<Place, Queued> queued = new HashMap<>();
    private int waiting;
    /** Whether nothing more comes, so that there is nothing to linger for. */
    boolean closing;

    /** Whether a caller should wait before it adds more. */
    boolean isFull() {
        return waiting >= WAITING_MAX;
    }

    /** Whether every timer was taken and settled. */
    boolean isIdle() {
        return waiting == 0 && inFlight.isEmpty();
    }

    void add(String owner, Entry entry) {
        Queued all = queued.merge(entry.item.place(), new Queued(owner, 1),
                (before, added) -> new Queued(before.owner, before.count + 1));
        lanes.computeIfAbsent(all.owner, url -> new Lane()).waiting.add(entry);
        waiting++;
    }

    /** Null: nothing is ready. `settled` has to follow. */
    @Nullable Taken take(double now) {
        for (Map.Entry<String, Lane> each : lanes.entrySet()) {
            Lane lane = each.getValue();
            if (readyAt(lane) <= now) {
                List<Entry> taken = take(lane);
                if (!taken.isEmpty()) {
                    lane.requests++;
                    return new Taken(each.getKey(), taken);
                }
            }
        }
        return null;
    }

    /** When `take` has something, if nothing is added or settled before; infinity: never. */
    double readyAt() {
        return lanes.values().stream().mapToDouble(this::readyAt).min().orElse(Double.POSITIVE_INFINITY);
    }

    /** The request of these timers is over. */
    void settled(Taken taken) {
        taken.entries.forEach(entry -> inFlight.remove(entry.item.place()));
        Lane lane = lanes.get(taken.owner);
        lane.requests--;
        if (lane.waiting.isEmpty() && lane.requests == 0) {
            lanes.remove(taken.owner);
        }
    }

    private double readyAt(Lane lane) {
        boolean free = lane.waiting.stream().anyMatch(entry -> !inFlight.contains(entry.item.place()));
        if (!free || lane.requests >= REQUESTS_PER_OWNER) {
            return Double.POSITIVE_INFINITY;
        }
        if (closing || lane.waiting.size() >= ITEMS_PER_REQUEST) {
            return Double.NEGATIVE_INFINITY;
        }
        return lane.waiting.getFirst().addedAt + LINGER_S;
    }

    private List<Entry> take(Lane lane) {
        List<Entry> taken = new ArrayList<>();
        Deque<Entry> left = new ArrayDeque<>();
        int sizeBytes = Batches.ENVELOPE_BYTES;
        // Names that wait on: later timers of the same name stay behind them.
        Set<Place> blocked = new HashSet<>();
        while (!lane.waiting.isEmpty() && taken.size() < ITEMS_PER_REQUEST) {
            Entry entry = lane.waiting.poll();
            Place place = entry.item.place();
            boolean fits = sizeBytes + entry.item.sizeBytes() <= Batches.BYTES_MAX || taken.isEmpty();
            if (fits && !blocked.contains(place) && inFlight.add(place)) {
                taken.add(entry);
                queued.computeIfPresent(place,
                        (name, all) -> all.count > 1 ? new Queued(all.owner, all.count - 1) : null);
                sizeBytes += entry.item.sizeBytes();
            } else {
                left.add(entry);
                blocked.add(place);
            }
        }
        left.addAll(lane.waiting);
        lane.waiting = left;
        waiting -= taken.size();
        return taken;
    }
}

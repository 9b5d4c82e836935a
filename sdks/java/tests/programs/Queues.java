package dev.tocsin.client;

import dev.tocsin.client.model.CreateTimer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.CompletableFuture;

/** In which order the timers of one name are sent whose owner changes while they wait. */
class Queues {
    private static final double LATER = 1;
    private static final BatchQueue QUEUE = new BatchQueue();

    public static void main(String[] arguments) {
        Deque<BatchQueue.Taken> requests = new ArrayDeque<>();
        for (String id : new String[] {"x", "y"}) { // as many as the owner gets at a time
            add(id, "first", "a");
            requests.add(QUEUE.take(LATER));
        }
        add("t", "old", "a");
        add("t", "new", "b");
        for (int settled = 0; settled < 4; settled++) {
            BatchQueue.Taken taken = QUEUE.take(LATER);
            if (taken != null) {
                requests.add(taken);
                System.out.println(taken.owner() + " " + taken.entries().get(0).item().body().get("callbackUrl").asString());
            }
            QUEUE.settled(requests.poll());
        }
        add("t", "another", "b");
        System.out.println(QUEUE.take(LATER).owner());
    }

    private static void add(String id, String callbackUrl, String owner) {
        Batches.Item item = Batches.Item.of(CreateTimer.of("n", id, callbackUrl).delay(Duration.ofHours(1)));
        QUEUE.add(owner, new BatchQueue.Entry(item, new CompletableFuture<>(), 0));
    }
}

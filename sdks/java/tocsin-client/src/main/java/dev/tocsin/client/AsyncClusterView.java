package dev.tocsin.client;

import dev.tocsin.client.model.Cluster;
import dev.tocsin.client.model.GetStatistics;
import dev.tocsin.client.model.Statistics;
import java.util.concurrent.CompletableFuture;

/** The servers; for programs that do not block. */
public final class AsyncClusterView {
    private final Steps steps;

    AsyncClusterView(Steps steps) {
        this.steps = steps;
    }

    /**
     * Reads nodes and shards.
     *
     * @return the cluster
     */
    public CompletableFuture<Cluster> get() {
        return steps.ask(Call.of(Operation.GET_CLUSTER, null), Cluster::fromJson);
    }

    /**
     * Reads what happened, slot by slot, on all nodes: in a namespace, or in all that the key may see.
     *
     * @param wanted the slots
     * @return the statistics
     */
    public CompletableFuture<Statistics> statistics(GetStatistics wanted) {
        return steps.ask(Call.of(Operation.GET_STATISTICS, wanted.toJson()), Statistics::fromJson);
    }
}

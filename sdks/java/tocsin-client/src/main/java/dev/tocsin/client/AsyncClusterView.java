package dev.tocsin.client;

import dev.tocsin.client.model.Cluster;
import java.util.concurrent.CompletableFuture;

/** The servers; for programs that do not block. */
public final class AsyncClusterView {
    private final Flows flows;

    AsyncClusterView(Flows flows) {
        this.flows = flows;
    }

    /**
     * Reads nodes and shards.
     *
     * @return the cluster
     */
    public CompletableFuture<Cluster> get() {
        return flows.ask(Call.of(Operation.GET_CLUSTER, null), Cluster::fromJson);
    }
}

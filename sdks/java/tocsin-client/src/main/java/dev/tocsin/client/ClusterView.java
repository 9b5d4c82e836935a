package dev.tocsin.client;

import dev.tocsin.client.model.Cluster;
import dev.tocsin.client.model.GetStatistics;
import dev.tocsin.client.model.Statistics;

/** The servers. */
public final class ClusterView {
    private final AsyncClusterView async;

    ClusterView(AsyncClusterView async) {
        this.async = async;
    }

    /**
     * Reads nodes and shards.
     *
     * @return the cluster
     */
    public Cluster get() {
        return Run.join(async.get());
    }

    /**
     * Reads what happened, slot by slot, on all nodes: in a namespace, or in all that the key may see.
     *
     * @param wanted the slots
     * @return the statistics
     */
    public Statistics statistics(GetStatistics wanted) {
        return Run.join(async.statistics(wanted));
    }
}

package dev.tocsin.client;

import dev.tocsin.client.model.Cluster;

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
}

package dev.tocsin.client;

/**
 * The entry: {@code Tocsin.client("http://127.0.0.1:8080").build()}.
 *
 * <p>A program makes one client, for all its threads, and keeps it.
 */
public final class Tocsin {
    private Tocsin() {}

    /**
     * Starts to make a client.
     *
     * @param url of a server, or of any node of a cluster
     * @return options, and {@code build}
     */
    public static ClientBuilder client(String url) {
        return new ClientBuilder(url);
    }

    /**
     * Makes the id of a new tenant, a UUID of version 7. Store it: the tenant's calls are found by it alone.
     *
     * @return the id
     */
    public static String newTenantId() {
        return Place.uuid7(System.currentTimeMillis()).toString();
    }
}

package dev.tocsin.client;

/** The version of this library, as in the poms; a test compares them. */
final class Version {
    static final String TEXT = "0.1.0";

    private Version() {}
}

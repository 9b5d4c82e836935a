package dev.tocsin.client;

import dev.tocsin.client.error.TocsinException;
import org.jspecify.annotations.Nullable;

/**
 * What became of the rows that a {@link Drain} has taken.
 *
 * @param created their timers are created, and they are deleted
 * @param dead the server refuses them for good; they stay in the table, with the reason
 * @param waiting they are tried again later
 * @param unavailable why the server could not be asked, or did not answer; null if it did
 */
public record Drained(int created, int dead, int waiting, @Nullable TocsinException unavailable) {}

package dev.tocsin.client;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A part of a list.
 *
 * @param items may be empty without being the last
 * @param next of the page after this one; null: there is none
 * @param <T> the type of an element
 */
public record Page<T>(List<T> items, @Nullable String next) {}

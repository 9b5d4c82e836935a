/** Receives callbacks: verified firings, typed answers, and deduplication in SQL. */
@NullMarked
package dev.tocsin.receiver;

import org.jspecify.annotations.NullMarked;

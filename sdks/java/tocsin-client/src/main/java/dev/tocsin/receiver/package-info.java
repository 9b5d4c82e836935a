/** Receives callbacks: verified firings, typed answers, and deduplication in SQL. */
package dev.tocsin.receiver;

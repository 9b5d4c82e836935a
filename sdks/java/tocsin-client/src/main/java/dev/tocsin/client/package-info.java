/** Clients for Tocsin, the durable timer service. */
@NullMarked
package dev.tocsin.client;

import org.jspecify.annotations.NullMarked;

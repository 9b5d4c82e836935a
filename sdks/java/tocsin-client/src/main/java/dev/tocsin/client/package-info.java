/** Clients for Tocsin, the durable timer service. */
package dev.tocsin.client;

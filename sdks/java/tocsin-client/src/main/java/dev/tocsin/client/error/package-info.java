/** All errors: a class for each of the server's codes, below a class for each kind of status. */
package dev.tocsin.client.error;

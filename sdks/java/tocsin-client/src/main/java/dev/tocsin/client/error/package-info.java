/** All errors: a class for each of the server's codes, below a class for each kind of status. */
@NullMarked
package dev.tocsin.client.error;

import org.jspecify.annotations.NullMarked;

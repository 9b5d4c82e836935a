/** For your tests: a server whose clock you move, and signed callbacks without a server. */
@NullMarked
package dev.tocsin.testing;

import org.jspecify.annotations.NullMarked;

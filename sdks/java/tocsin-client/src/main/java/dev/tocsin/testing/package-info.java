/** For your tests: a server whose clock you move, and signed callbacks without a server. */
package dev.tocsin.testing;

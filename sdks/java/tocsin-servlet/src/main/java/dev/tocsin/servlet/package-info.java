/** Receives callbacks in servlets. */
@NullMarked
package dev.tocsin.servlet;

import org.jspecify.annotations.NullMarked;

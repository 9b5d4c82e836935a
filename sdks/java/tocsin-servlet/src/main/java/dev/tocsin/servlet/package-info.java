/** Receives callbacks in servlets. */
package dev.tocsin.servlet;

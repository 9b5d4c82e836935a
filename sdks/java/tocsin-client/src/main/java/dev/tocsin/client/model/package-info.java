/** What requests and answers contain; generated from the OpenAPI document. */
@NullMarked
package dev.tocsin.client.model;

import org.jspecify.annotations.NullMarked;

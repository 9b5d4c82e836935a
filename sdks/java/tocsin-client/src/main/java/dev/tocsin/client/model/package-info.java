/** What requests and answers contain; generated from the OpenAPI document. */
package dev.tocsin.client.model;

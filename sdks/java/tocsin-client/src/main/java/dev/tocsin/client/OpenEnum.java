package dev.tocsin.client;

/** A text of which some values are known; others may be added by later servers. */
public interface OpenEnum {
    /**
     * The text as the API writes it.
     *
     * @return the text
     */
    String value();

    /**
     * The value as JSON.
     *
     * @return a JSON string
     */
    default Json toJson() {
        return Json.of(value());
    }
}

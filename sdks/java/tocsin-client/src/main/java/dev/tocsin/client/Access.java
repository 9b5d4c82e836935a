package dev.tocsin.client;

import dev.tocsin.client.error.InvalidArgumentException;
import java.net.URI;
import java.net.URISyntaxException;
import org.jspecify.annotations.Nullable;

/** Checks what a client is made with, before the first request. */
final class Access {
    private static final int PORT_MAX = 65_535;

    private Access() {}

    /** The URL without slashes at its end. */
    static String url(String given) {
        URI url;
        try {
            url = new URI(given == null ? "" : given);
        } catch (URISyntaxException wrong) {
            throw refused(given, "is not a URL");
        }
        boolean http = "http".equalsIgnoreCase(url.getScheme()) || "https".equalsIgnoreCase(url.getScheme());
        if (!http) {
            throw refused(given, "does not begin with http:// or https://");
        }
        if (url.getRawAuthority() != null && url.getRawAuthority().contains("@")) {
            throw new InvalidArgumentException("url: has a user or password; give the API key as key instead");
        }
        if (url.getHost() == null) {
            throw refused(given, "has no valid host");
        }
        if (url.getPort() == 0 || url.getPort() > PORT_MAX) {
            throw refused(given, "has a port that is not between 1 and 65535");
        }
        if (url.getRawQuery() != null || url.getRawFragment() != null) {
            throw refused(given, "has a query or a fragment");
        }
        return withoutSlash(url.toASCIIString());
    }

    private static InvalidArgumentException refused(String url, String reason) {
        // What stands before an @ can be a password.
        String shown = url == null || url.contains("@") ? "" : "'" + url + "' ";
        return new InvalidArgumentException(
                "url: " + shown + reason + "; give the server's URL, such as http://127.0.0.1:8080");
    }

    static String withoutSlash(String url) {
        return url.endsWith("/") ? withoutSlash(url.substring(0, url.length() - 1)) : url;
    }

    /** The key without white space around it; null: none. The messages never show it. */
    static @Nullable String key(@Nullable String given) {
        if (given == null) {
            return null;
        }
        String key = given.strip();
        if (key.isEmpty()) {
            throw new InvalidArgumentException("key: is empty; give the API key as the server printed it, or none");
        }
        if (!key.chars().allMatch(each -> each > ' ' && each <= '~')) {
            throw new InvalidArgumentException(
                    "key: has other characters than visible ASCII; give the API key as the server printed it");
        }
        return key;
    }
}

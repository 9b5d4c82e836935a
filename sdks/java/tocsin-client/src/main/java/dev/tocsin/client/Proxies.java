package dev.tocsin.client;

import dev.tocsin.client.error.InvalidArgumentException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.SocketAddress;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The proxies of HTTP_PROXY, HTTPS_PROXY and NO_PROXY, which the JDK does not read. The JDK's system properties take precedence.
 * The machine itself is asked directly.
 */
final class Proxies extends ProxySelector {
    private static final Pattern LOOPBACK = Pattern.compile("localhost|127\\.[0-9.]+|\\[?::1]?");
    private static final int PORT = 80;

    private final @Nullable ProxySelector system;
    /** Null: none for this scheme. */
    private final @Nullable URI http;
    private final @Nullable URI https;
    private final List<String> direct;

    private Proxies(@Nullable ProxySelector system, @Nullable URI http, @Nullable URI https, List<String> direct) {
        this.system = system;
        this.http = http;
        this.https = https;
        this.direct = direct;
    }

    /** Empty: the environment names none. */
    static Optional<Proxies> ofEnvironment(Map<String, String> environment) {
        URI http = proxy(environment, "http_proxy");
        URI https = proxy(environment, "https_proxy");
        if (http == null && https == null) {
            return Optional.empty();
        }
        String direct = variable(environment, "no_proxy").toLowerCase(Locale.ROOT);
        return Optional.of(new Proxies(ProxySelector.getDefault(), http, https, List.of(direct.trim().split("[\\s,]+"))));
    }

    private static String variable(Map<String, String> environment, String name) {
        String upper = environment.getOrDefault(name.toUpperCase(Locale.ROOT), "");
        return environment.getOrDefault(name, upper);
    }

    private static @Nullable URI proxy(Map<String, String> environment, String name) {
        String given = variable(environment, name).strip();
        if (given.isEmpty()) {
            return null;
        }
        try {
            URI proxy = URI.create(given.contains("://") ? given : "http://" + given);
            if ("http".equalsIgnoreCase(proxy.getScheme()) && proxy.getHost() != null) {
                return proxy;
            }
        } catch (IllegalArgumentException malformed) {
            // Refused below, without the text: it may have a password.
        }
        throw new InvalidArgumentException(
                name.toUpperCase(Locale.ROOT) + ": is not the URL of an HTTP proxy, such as http://127.0.0.1:3128");
    }

    /**
     * The header for the proxy of this URL: its user and password; null: none is needed. An Authenticator would not do: with
     * one, the JDK drops the header that has the API key.
     */
    @Nullable String authorization(URI url) {
        URI proxy = proxyOf(url);
        return proxy == null || proxy.getRawUserInfo() == null ? null
                : "Basic " + Base64.getEncoder().encodeToString(decoded(proxy.getRawUserInfo()).getBytes(StandardCharsets.UTF_8));
    }

    /** Null: the environment's is not used. */
    private URI proxyOf(URI url) {
        URI proxy = "https".equalsIgnoreCase(url.getScheme()) ? https : http;
        boolean other = system != null && system.select(url).stream().anyMatch(each -> each.type() != Proxy.Type.DIRECT);
        return proxy == null || other || isDirect(url) ? null : proxy;
    }

    @Override
    public List<Proxy> select(URI url) {
        URI proxy = proxyOf(url);
        if (proxy == null) {
            return system == null ? List.of(Proxy.NO_PROXY) : system.select(url);
        }
        // Not resolved here: the HTTP client does that when it connects.
        return List.of(new Proxy(Proxy.Type.HTTP, InetSocketAddress.createUnresolved(proxy.getHost(), port(proxy))));
    }

    private static int port(URI url) {
        return url.getPort() > 0 ? url.getPort() : PORT;
    }

    private boolean isDirect(URI url) {
        String host = url.getHost().toLowerCase(Locale.ROOT);
        if (LOOPBACK.matcher(host).matches()) {
            return true;
        }
        return direct.stream().filter(each -> !each.isEmpty()).anyMatch(each -> {
            String suffix = each.startsWith("*.") ? each.substring(1) : each;
            String withPort = host + ":" + url.getPort();
            String parent = suffix.startsWith(".") ? suffix : "." + suffix;
            return each.equals("*") || ("." + host).endsWith(parent) || ("." + withPort).endsWith(parent);
        });
    }

    @Override
    public void connectFailed(URI url, SocketAddress proxy, IOException reason) {
        // The request's error states it.
    }

    private static String decoded(String text) {
        return URLDecoder.decode(text.replace("+", "%2B"), StandardCharsets.UTF_8);
    }
}

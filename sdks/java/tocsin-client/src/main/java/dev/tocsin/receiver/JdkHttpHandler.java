package dev.tocsin.receiver;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;

/** Passes requests of the JDK's own HTTP server to a receiver. */
public final class JdkHttpHandler implements HttpHandler {
    private final Receiver receiver;
    private final Handler handler;

    /**
     * A handler for {@code HttpServer.createContext}.
     *
     * @param receiver verifies requests
     * @param handler gets the firings
     */
    public JdkHttpHandler(Receiver receiver, Handler handler) {
        this.receiver = receiver;
        this.handler = handler;
    }

    @Override
    public void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            Map<String, String> headers = new HashMap<>();
            exchange.getRequestHeaders().forEach((name, values) -> headers.put(name, values.get(0)));
            byte[] body = exchange.getRequestBody().readNBytes(Receiver.BODY_BYTES_MAX + 1);
            Answer answer = receiver.handle(headers, body, handler);
            answer.headers().forEach(exchange.getResponseHeaders()::set);
            boolean withoutBody = answer.body().isEmpty() || exchange.getRequestMethod().equals("HEAD");
            exchange.sendResponseHeaders(answer.status(), withoutBody ? -1 : answer.bytes().length);
            if (!withoutBody) {
                exchange.getResponseBody().write(answer.bytes());
            }
        }
    }
}

package dev.tocsin.servlet;

import dev.tocsin.receiver.Answer;
import dev.tocsin.receiver.Handler;
import dev.tocsin.receiver.Receiver;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;

/** Passes requests to a receiver. Register an instance of it for the path of your timers' callbacks. */
public class ReceiverServlet extends HttpServlet {
    private static final long serialVersionUID = 1L;

    private final transient Receiver receiver;
    private final transient Handler handler;

    /**
     * A servlet for one handler.
     *
     * @param receiver verifies requests
     * @param handler gets the firings
     */
    public ReceiverServlet(Receiver receiver, Handler handler) {
        this.receiver = receiver;
        this.handler = handler;
    }

    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
        Map<String, String> headers = new HashMap<>();
        request.getHeaderNames().asIterator().forEachRemaining(name -> headers.put(name, request.getHeader(name)));
        byte[] body = request.getInputStream().readNBytes(Receiver.BODY_BYTES_MAX + 1);
        Answer answer = receiver.handle(headers, body, handler);
        response.setStatus(answer.status());
        answer.headers().forEach(response::setHeader);
        response.setContentLength(answer.bytes().length);
        response.getOutputStream().write(answer.bytes());
    }
}

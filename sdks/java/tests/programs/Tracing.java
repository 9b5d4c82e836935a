import dev.tocsin.client.Tocsin;
import dev.tocsin.client.TocsinClient;
import dev.tocsin.client.error.WaitTimeoutException;
import dev.tocsin.client.model.CreateTimer;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.TraceFlags;
import io.opentelemetry.api.trace.TraceState;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import java.time.Duration;
import java.util.Map;
import java.util.stream.IntStream;

/** Calls of more than one request, within the span whose id is the second argument, to the server of the first. */
class Tracing {
    public static void main(String[] arguments) {
        W3CTraceContextPropagator propagator = W3CTraceContextPropagator.getInstance();
        SpanContext span = SpanContext.create(
                "0af7651916cd43dd8448eb211c80319c", arguments[1], TraceFlags.getSampled(), TraceState.getDefault());
        try (TocsinClient client = Tocsin.client(arguments[0])
                        .onRequest(headers -> propagator.inject(Context.current(), headers, Map::put)).build();
                Scope current = Context.root().with(Span.wrap(span)).makeCurrent()) {
            client.timers().createMany(IntStream.rangeClosed(0, 1_000).mapToObj(each ->
                    CreateTimer.of("default", "traced-" + each, "http://127.0.0.1:9/").delay(Duration.ofDays(1)))::iterator);
            client.timers().delete("default", "traced-0");
            try {
                client.timers().await("default", "traced-1", Duration.ofMillis(100));
            } catch (WaitTimeoutException expected) {
                System.out.println(expected.getMessage());
            }
        }
    }
}

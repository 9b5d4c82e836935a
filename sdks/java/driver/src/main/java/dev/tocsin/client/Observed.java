package dev.tocsin.client;

import java.util.ArrayList;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** What all clients report of their tries: to the hook, and to the log. */
final class Observed {
    /** The log manager keeps no logger that nobody refers to. */
    private static final Logger LOG = Logger.getLogger("dev.tocsin.client");

    private final List<Json> tries = new ArrayList<>();
    private final List<Json> lines = new ArrayList<>();

    Observed() {
        LOG.setLevel(Level.FINE);
        LOG.addHandler(new Handler() {
            @Override
            public void publish(LogRecord logged) {
                if (logged.getLevel() == Level.FINE) {
                    add(lines, Json.of(logged.getMessage()));
                }
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        });
    }

    /** The hook. */
    void record(Try ended) {
        add(tries, Reflection.write(ended));
    }

    private synchronized void add(List<Json> list, Json seen) {
        list.add(seen);
    }

    /** Both since this was called last. */
    synchronized Json taken() {
        Json taken = Json.object()
                .with("tries", Json.array(tries, each -> each)).with("lines", Json.array(lines, each -> each));
        tries.clear();
        lines.clear();
        return taken;
    }
}

package dev.tocsin.receiver;

/** What a program does when a timer fires. */
@FunctionalInterface
public interface Handler {
    /**
     * Handles one firing. It may come again: at least once is what Tocsin promises.
     *
     * @param firing a verified callback
     * @return not null
     * @throws Exception is logged, and answered 500: the timer's retry policy decides
     */
    Answer handle(Firing firing) throws Exception;
}

package dev.tocsin.client;

import dev.tocsin.client.error.FlowNotFoundException;
import dev.tocsin.client.error.TooManyFlowsException;
import dev.tocsin.client.model.Flow;
import dev.tocsin.client.model.ListFlows;
import dev.tocsin.client.model.PauseFlow;
import dev.tocsin.client.model.PutFlow;

/** Rules that limit how many attempts begin, and are in flight at once, of timers and schedules with the same flow key. */
public final class Flows {
    private final AsyncFlows async;

    Flows(AsyncFlows async) {
        this.async = async;
    }

    /**
     * Creates a rule, or replaces all its limits; one that is paused stays so.
     *
     * @param rule what it matches, and its limits
     * @return the rule
     * @throws TooManyFlowsException if the namespace has as many as it can have
     */
    public Flow put(PutFlow rule) {
        return Run.join(async.put(rule));
    }

    /**
     * Reads a rule, and what is in flight and waits.
     *
     * @param namespace its namespace
     * @param match its match: a flow key, or a prefix, which ends with a colon
     * @return the rule
     * @throws FlowNotFoundException if there is none with exactly this match
     */
    public Flow get(String namespace, String match) {
        return Run.join(async.get(namespace, match));
    }

    /**
     * Lists the rules of a namespace, by what they match.
     *
     * @param query which; its limit is the size of a page
     * @return the rules
     */
    public Pages<Flow> list(ListFlows query) {
        return new Pages<>(async.list(query));
    }

    /**
     * Lets nothing of the rule's keys begin until an instant, or until {@link #resume}.
     *
     * @param pause which rule, and until when
     * @return the rule
     * @throws FlowNotFoundException if there is none
     */
    public Flow pause(PauseFlow pause) {
        return Run.join(async.pause(pause));
    }

    /**
     * Ends a pause.
     *
     * @param namespace the rule's namespace
     * @param match its match
     * @return the rule
     * @throws FlowNotFoundException if there is none
     */
    public Flow resume(String namespace, String match) {
        return Run.join(async.resume(namespace, match));
    }

    /**
     * Deletes a rule: its keys are subject to the rule with the next longest prefix, or not limited.
     *
     * @param namespace its namespace
     * @param match its match
     * @throws FlowNotFoundException if there is none
     */
    public void delete(String namespace, String match) {
        Run.join(async.delete(namespace, match));
    }
}

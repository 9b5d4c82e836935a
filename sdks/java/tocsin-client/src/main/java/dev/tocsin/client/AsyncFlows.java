package dev.tocsin.client;

import dev.tocsin.client.error.FlowNotFoundException;
import dev.tocsin.client.error.TooManyFlowsException;
import dev.tocsin.client.model.Flow;
import dev.tocsin.client.model.FlowName;
import dev.tocsin.client.model.FlowPage;
import dev.tocsin.client.model.ListFlows;
import dev.tocsin.client.model.PauseFlow;
import dev.tocsin.client.model.PutFlow;
import java.util.concurrent.CompletableFuture;

/**
 * Rules that limit how many attempts begin, and are in flight at once, of timers and schedules with the same flow key; for
 * programs that do not block.
 */
public final class AsyncFlows {
    private final Steps steps;

    AsyncFlows(Steps steps) {
        this.steps = steps;
    }

    /**
     * Creates a rule, or replaces all its limits; one that is paused stays so.
     *
     * @param rule what it matches, and its limits
     * @return the rule; fails with {@link TooManyFlowsException} if the namespace has as many as it can have
     */
    public CompletableFuture<Flow> put(PutFlow rule) {
        Call get = named(Operation.GET_FLOW, rule.namespace(), rule.match());
        return steps.update(Call.of(Operation.PUT_FLOW, rule.toJson()), get, Flow::fromJson);
    }

    /**
     * Reads a rule, and what is in flight and waits.
     *
     * @param namespace its namespace
     * @param match its match: a flow key, or a prefix, which ends with a colon
     * @return the rule; fails with {@link FlowNotFoundException} if there is none with exactly this match
     */
    public CompletableFuture<Flow> get(String namespace, String match) {
        return steps.ask(named(Operation.GET_FLOW, namespace, match), Flow::fromJson);
    }

    /**
     * Lists the rules of a namespace, by what they match.
     *
     * @param query which; its limit is the size of a page
     * @return the rules
     */
    public AsyncPages<Flow> list(ListFlows query) {
        return new AsyncPages<>(after -> {
            ListFlows page = after == null ? query : query.cursor(after);
            return steps.ask(Call.of(Operation.LIST_FLOWS, page.toJson()), json -> {
                FlowPage found = FlowPage.fromJson(json);
                return new Page<>(found.flows(), found.nextCursor());
            });
        });
    }

    /**
     * Lets nothing of the rule's keys begin until an instant, or until {@link #resume}.
     *
     * @param pause which rule, and until when
     * @return the rule; fails with {@link FlowNotFoundException} if there is none
     */
    public CompletableFuture<Flow> pause(PauseFlow pause) {
        return steps.ask(Call.of(Operation.PAUSE_FLOW, pause.toJson()), Flow::fromJson);
    }

    /**
     * Ends a pause.
     *
     * @param namespace the rule's namespace
     * @param match its match
     * @return the rule; fails with {@link FlowNotFoundException} if there is none
     */
    public CompletableFuture<Flow> resume(String namespace, String match) {
        return steps.ask(named(Operation.RESUME_FLOW, namespace, match), Flow::fromJson);
    }

    /**
     * Deletes a rule: its keys are subject to the rule with the next longest prefix, or not limited.
     *
     * @param namespace its namespace
     * @param match its match
     * @return completed when it is done; fails with {@link FlowNotFoundException} if there is none
     */
    public CompletableFuture<Void> delete(String namespace, String match) {
        return steps.delete(
                named(Operation.DELETE_FLOW, namespace, match), named(Operation.GET_FLOW, namespace, match), found -> false);
    }

    private static Call named(Operation operation, String namespace, String match) {
        return Call.of(operation, FlowName.of(namespace, match).toJson());
    }
}

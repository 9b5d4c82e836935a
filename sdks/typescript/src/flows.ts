/** Rules of flows. */

import { bodyOf } from "./core/bodies.js";
import { ask, remove, update } from "./core/flows.js";
import type { CallOptions, Session } from "./core/session.js";
import { encodeFlowName, encodeListFlows, encodePauseFlow, encodePutFlow } from "./generated/codecs.js";
import type { Flow, FlowName, ListFlows, PauseFlow, PutFlow } from "./generated/models.js";
import { Pages } from "./pages.js";

/**
 * Rules that limit how many attempts begin, and are in flight at once, of timers and schedules with the same `flowKey`. `match`
 * is a flow key, or a prefix of flow keys, which ends with a colon.
 */
export class Flows {
  /** Made with the client. */
  constructor(private readonly session: Session) {}

  /**
   * Creates the rule, or replaces all its limits; one that is paused stays so. TooManyFlows: the namespace has as many as it can
   * have.
   */
  async put(rule: PutFlow, options?: CallOptions): Promise<Flow> {
    const { namespace, match } = rule;
    return update(
      this.session,
      "Flow",
      { operation: "putFlow", body: bodyOf(encodePutFlow(rule)) },
      { operation: "getFlow", body: bodyOf(encodeFlowName({ namespace, match })) },
      this.session.limits(options),
    );
  }

  /** The rule, and what is in flight and waits. FlowNotFound: there is none with exactly this match. */
  async get(name: FlowName, options?: CallOptions): Promise<Flow> {
    return ask(this.session, "Flow", "getFlow", encodeFlowName(name), options);
  }

  /** The rules of a namespace, by what they match; `limit` is the size of a page. */
  list(query: Omit<ListFlows, "cursor">, options?: CallOptions): Pages<Flow> {
    return new Pages(async (cursor) => {
      const page = await ask(this.session, "FlowPage", "listFlows", encodeListFlows({ ...query, cursor }), options);
      return { elements: page.flows, next: page.nextCursor };
    });
  }

  /** Lets nothing of the rule's keys begin until an instant, or until `resume`. FlowNotFound: there is no such rule. */
  async pause(pause: PauseFlow, options?: CallOptions): Promise<Flow> {
    return ask(this.session, "Flow", "pauseFlow", encodePauseFlow(pause), options);
  }

  /** Ends a pause. FlowNotFound: there is no such rule. */
  async resume(name: FlowName, options?: CallOptions): Promise<Flow> {
    return ask(this.session, "Flow", "resumeFlow", encodeFlowName(name), options);
  }

  /**
   * Deletes the rule: its keys are subject to the rule with the next longest prefix, or not limited. FlowNotFound: there is no
   * such rule.
   */
  async delete(name: FlowName, options?: CallOptions): Promise<void> {
    const body = bodyOf(encodeFlowName(name));
    await remove(
      this.session,
      { operation: "deleteFlow", body },
      { operation: "getFlow", body },
      () => false,
      this.session.limits(options),
    );
  }
}

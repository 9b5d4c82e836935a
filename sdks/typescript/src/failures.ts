/** What failed and nobody has dealt with. */

import { ask } from "./core/flows.js";
import type { CallOptions, Session } from "./core/session.js";
import { encodeDismissFailures, encodeListFailureMembers, encodeListFailures } from "./generated/codecs.js";
import type {
  DismissedFailures,
  DismissFailures,
  Failure,
  FailureList,
  ListFailureMembers,
  ListFailures,
} from "./generated/models.js";
import { Pages } from "./pages.js";

/** Which failures to list; `limit` is the size of a page. */
export type FailureFilter = Omit<ListFailureMembers, "cursor">;

/** Timers, occurrences of schedules and, of a tenant instead of a namespace, service calls that failed, until dismissed. */
export class Failures {
  /** Made with the client. */
  constructor(private readonly session: Session) {}

  /** Groups of failures with the same cause, those with most failures first. */
  async list(wanted: ListFailures = { namespace: "*" }, options?: CallOptions): Promise<FailureList> {
    return ask(this.session, "FailureList", "listFailures", encodeListFailures(wanted), options);
  }

  /** The failures of a group, or all, newest first. */
  members(filter: FailureFilter = { namespace: "*" }, options?: CallOptions): Pages<Failure> {
    return new Pages(async (cursor) => {
      const body = encodeListFailureMembers({ ...filter, cursor });
      const page = await ask(this.session, "FailurePage", "listFailureMembers", body, options);
      return { elements: page.failures, next: page.nextCursor };
    });
  }

  /** Removes failures from the list: by their ids, those of a group, or all. Repeat it while the answer has `more`. */
  async dismiss(wanted: DismissFailures, options?: CallOptions): Promise<DismissedFailures> {
    return ask(this.session, "DismissedFailures", "dismissFailures", encodeDismissFailures(wanted), options);
  }
}

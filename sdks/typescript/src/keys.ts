/** API keys, and the audit trail of what was done with them. */

import { readNothing } from "./core/answers.js";
import { bodyOf } from "./core/bodies.js";
import { ask } from "./core/flows.js";
import type { CallOptions, Session } from "./core/session.js";
import { NotFound } from "./error-bases.js";
import { encodeCreateKey, encodeListAudit, encodeRevokeKey } from "./generated/codecs.js";
import type {
  AuditAction,
  AuditEntry,
  CreatedKey,
  CreateKey,
  ListAudit,
  RevokeKey,
  ShownKey,
} from "./generated/models.js";
import { Pages } from "./pages.js";

/** API keys. Every call requires one of role admin, and reaches no further than that key. */
export class Keys {
  /** Made with the client. */
  constructor(private readonly session: Session) {}

  /**
   * Creates a key; only this answer shows it. A lost answer is not followed by a retry, since that could make two:
   * TransportError with `maybeDone`.
   */
  async create(key: CreateKey, options?: CallOptions): Promise<CreatedKey> {
    return ask(this.session, "CreatedKey", "createKey", encodeCreateKey(key), options, { unsafe: true });
  }

  /** The keys within the scope of the client's own, oldest first, also expired ones. */
  async list(options?: CallOptions): Promise<ShownKey[]> {
    return (await ask(this.session, "KeyList", "listKeys", {}, options)).keys;
  }

  /** Ends a key at once; on other nodes within a moment. KeyNotFound: there is none in the scope of the client's own. */
  async revoke(key: RevokeKey, options?: CallOptions): Promise<void> {
    const tries = { maybeDone: false };
    const call = { operation: "revokeKey", body: bodyOf(encodeRevokeKey(key)) } as const;
    try {
      readNothing(await this.session.perform(call, this.session.limits(options), tries));
    } catch (error) {
      // After a lost answer the key is gone because it was revoked.
      if (!(error instanceof NotFound && tries.maybeDone)) {
        throw error;
      }
    }
  }
}

/** Which entries to list; `limit` is the size of a page. */
export type AuditFilter = Omit<ListAudit, "cursor" | "action"> & {
  readonly action?: AuditAction | readonly AuditAction[] | undefined;
};

/** The audit trail: sign-ins, and changes of keys and namespaces. */
export class Audit {
  /** Made with the client. */
  constructor(private readonly session: Session) {}

  /** All entries that match, newest first. It requires a key of role admin that is not limited to namespaces or tenants. */
  list(filter: AuditFilter = {}, options?: CallOptions): Pages<AuditEntry> {
    const { action } = filter;
    return new Pages(async (cursor) => {
      const body = encodeListAudit({ ...filter, action: typeof action === "string" ? [action] : action, cursor });
      const page = await ask(this.session, "AuditPage", "listAudit", body, options);
      return { elements: page.entries, next: page.nextCursor };
    });
  }
}

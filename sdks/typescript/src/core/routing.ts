/** Which node owns a timer. A wrong answer costs time, never correctness: any node forwards. */

import { ApiError, TocsinError, TransportError } from "../error-bases.js";
import type { ShardOwners } from "../generated/models.js";
import type { Logger } from "../logger.js";
import { read } from "./answers.js";
import type { Clock } from "./clock.js";
import { type Place, shardOf } from "./ids.js";
import type { Failure } from "./retries.js";
import type { Call } from "./session.js";
import type { Reply } from "./transport.js";

const RENEWED_EVERY_MS = 30_000;
const RENEWAL_JITTER = 0.2;
/** After a sign that the map is wrong it is read again, at most this often. */
const RENEWALS_APART_MS = 1_000;
/** So long a node that failed gets no requests. */
const AVOIDED_FOR_MS = 5_000;

/** Reads something aside from the call. */
export type Read = (call: Call) => Promise<Reply | Failure>;

/** The shards' owners, as a node sees them: a base URL for each shard, undefined where only the given URL serves. */
interface OwnerMap {
  readonly totalShards: number;
  readonly urls: readonly (string | undefined)[];
  readonly numShards: ReadonlyMap<string, number>;
}

/** Reads the map when a write needs it, and forgets it as soon as something contradicts it. */
export class Router {
  private map: OwnerMap | undefined;
  private etag: string | undefined;
  /** When the map is read next. */
  private due = Number.NEGATIVE_INFINITY;
  private readAt = Number.NEGATIVE_INFINITY;
  private reading = false;
  private enabled = true;
  private readonly avoided = new Map<string, number>();

  constructor(
    private readonly base: string,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** The URL of the node to send this write to. */
  async baseFor(place: Place, read: Read): Promise<string> {
    if (this.enabled && !this.reading && this.clock.monotonicMs() >= this.due) {
      this.reading = true;
      try {
        await this.renew(read);
      } finally {
        this.reading = false;
      }
    }
    return this.urlOf(place);
  }

  /** By the present map: the owner's URL, or the client's own where no owner is known or it failed recently. */
  urlOf(place: Place): string {
    const url = this.map?.urls[this.shardOf(place) ?? Number.NaN];
    if (url === undefined || (this.avoided.get(url) ?? Number.NEGATIVE_INFINITY) > this.clock.monotonicMs()) {
      return this.base;
    }
    return url;
  }

  /** What became of a write that was sent to this node. */
  observe(base: string, outcome: Reply | TransportError): void {
    const failed = outcome instanceof TransportError || outcome.status === 503;
    const stale = failed || outcome.headers.get("tocsin-forwarded") === "1";
    const now = this.clock.monotonicMs();
    if (failed && base !== this.base) {
      this.avoided.set(base, now + AVOIDED_FOR_MS);
    }
    if (stale && (base !== this.base || !(outcome instanceof TransportError))) {
      this.due = Math.min(this.due, Math.max(now, this.readAt + RENEWALS_APART_MS));
    }
  }

  /** Switches routing off if the server stores timers elsewhere than this version reckons. */
  check(place: Place, shardId: number): void {
    const expected = this.shardOf(place);
    if (expected !== undefined && expected !== shardId) {
      this.disable("the server stores timers in other shards than this version expects");
    }
  }

  private shardOf(place: Place): number | undefined {
    const numShards = this.map?.numShards.get(place.namespace);
    if (!this.enabled || this.map === undefined || numShards === undefined) {
      return undefined;
    }
    return shardOf(place, numShards, this.map.totalShards);
  }

  private disable(reason: string): void {
    this.enabled = false;
    this.logger.warn?.(`tocsin: owner routing is off: ${reason}; all requests go to ${this.base}`);
  }

  private async renew(ask: Read): Promise<void> {
    this.readAt = this.clock.monotonicMs();
    const headers: Record<string, string> = this.etag === undefined ? {} : { "if-none-match": this.etag };
    const [view, names] = await Promise.all([
      ask({ operation: "getCluster", query: { view: "owners" }, headers }),
      ask({ operation: "listNamespaces", body: () => "{}" }),
    ]);
    const spread = 1 + RENEWAL_JITTER * (2 * this.clock.random() - 1);
    this.due = this.clock.monotonicMs() + RENEWED_EVERY_MS * spread;
    if (view instanceof ApiError && [400, 403, 404].includes(view.status)) {
      this.disable(`the owners of shards can't be read: ${view.message}`);
    } else if (view instanceof Error || names instanceof Error) {
      this.due = this.clock.monotonicMs() + RENEWALS_APART_MS;
    } else {
      this.adopt(view, names);
    }
  }

  private adopt(view: Reply, names: Reply): void {
    try {
      const namespaces = read("NamespaceList", names).namespaces;
      const numShards = new Map(namespaces.map((each) => [each.name, each.numShards]));
      if (view.status === 304 && this.map !== undefined) {
        this.map = { ...this.map, numShards };
        return;
      }
      this.map = mapOf(read("ShardOwners", view), numShards);
      this.etag = view.headers.get("etag") ?? undefined;
    } catch (error) {
      if (!(error instanceof TocsinError)) {
        throw error;
      }
      this.disable(error.message);
    }
  }
}

/** Nodes that are dead, leaving or skewed, or whose URL is not theirs alone, are asked through the client's own URL. */
function mapOf(view: ShardOwners, numShards: ReadonlyMap<string, number>): OwnerMap {
  const urls = view.nodes.map(({ apiUrl, alive, leaving, skewed }) => {
    const alone = view.nodes.filter((other) => other.apiUrl === apiUrl).length === 1;
    return apiUrl && alone && alive && !leaving && !skewed ? apiUrl.replace(/\/+$/, "") : undefined;
  });
  return {
    totalShards: view.totalShards,
    urls: view.owners.map((owner) => (owner === null ? undefined : urls[owner])),
    numShards,
  };
}

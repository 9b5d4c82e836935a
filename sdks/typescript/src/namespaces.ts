/** Namespaces, and the cluster. */

import { read } from "./core/answers.js";
import { ask } from "./core/flows.js";
import type { CallOptions, Session } from "./core/session.js";
import {
  encodeCreateNamespace,
  encodeGetStatistics,
  encodeRotateSecret,
  encodeUpdateNamespace,
} from "./generated/codecs.js";
import type {
  Cluster,
  CreateNamespace,
  GetStatistics,
  Namespace,
  RotatedSecret,
  RotateSecret,
  Statistics,
  UpdateNamespace,
} from "./generated/models.js";

/** Namespaces: timers with a secret, a retention and a default retry policy of their own. */
export class Namespaces {
  /** Made with the client. */
  constructor(private readonly session: Session) {}

  /**
   * Creates a namespace. NamespaceExists: there is one of this name. A lost answer is not followed by a retry: TransportError
   * with `maybeDone`.
   */
  async create(namespace: CreateNamespace, options?: CallOptions): Promise<Namespace> {
    const sent = encodeCreateNamespace(namespace);
    return ask(this.session, "Namespace", "createNamespace", sent, options, { unsafe: true });
  }

  /** Changes the given members; null removes `secret` and `retryPolicy`. */
  async update(change: UpdateNamespace, options?: CallOptions): Promise<Namespace> {
    return ask(this.session, "Namespace", "updateNamespace", encodeUpdateNamespace(change), options);
  }

  /** Signs with a new secret, and during `grace` with the former one, too. Only this answer shows the secret. */
  async rotateSecret(rotation: RotateSecret, options?: CallOptions): Promise<RotatedSecret> {
    const sent = encodeRotateSecret(rotation);
    return ask(this.session, "RotatedSecret", "rotateNamespaceSecret", sent, options, { unsafe: true });
  }

  /** All namespaces that the key may see. */
  async list(options?: CallOptions): Promise<Namespace[]> {
    return (await ask(this.session, "NamespaceList", "listNamespaces", {}, options)).namespaces;
  }
}

/** The servers. */
export class ClusterView {
  /** Made with the client. */
  constructor(private readonly session: Session) {}

  /** Nodes and shards. */
  async get(options?: CallOptions): Promise<Cluster> {
    const reply = await this.session.perform({ operation: "getCluster" }, this.session.limits(options));
    return read("Cluster", reply);
  }

  /** What happened, slot by slot, on all nodes: in a namespace, or in all that the key may see. */
  async statistics(wanted: GetStatistics = {}, options?: CallOptions): Promise<Statistics> {
    return ask(this.session, "Statistics", "getStatistics", encodeGetStatistics(wanted), options);
  }
}

/** Namespaces, and the cluster. */

import { read } from "./core/answers.js";
import { bodyOf } from "./core/bodies.js";
import { ask, update } from "./core/flows.js";
import type { CallOptions, Session } from "./core/session.js";
import {
  encodeCreateNamespace,
  encodeDeleteNamespace,
  encodeGetNamespace,
  encodeGetStatistics,
  encodeRotateSecret,
  encodeUpdateNamespace,
} from "./generated/codecs.js";
import type {
  Cluster,
  CreateNamespace,
  DeleteNamespace,
  GetNamespace,
  GetStatistics,
  Job,
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
    const { name } = change;
    return update(
      this.session,
      "Namespace",
      { operation: "updateNamespace", body: bodyOf(encodeUpdateNamespace(change)) },
      { operation: "getNamespace", body: bodyOf(encodeGetNamespace({ name })) },
      this.session.limits(options),
    );
  }

  /** Signs with a new secret, and during `grace` with the former one, too. Only this answer shows the secret. */
  async rotateSecret(rotation: RotateSecret, options?: CallOptions): Promise<RotatedSecret> {
    const sent = encodeRotateSecret(rotation);
    return ask(this.session, "RotatedSecret", "rotateNamespaceSecret", sent, options, { unsafe: true });
  }

  /** The namespace and its settings. NamespaceNotFound: there is none of this name. */
  async get(name: GetNamespace, options?: CallOptions): Promise<Namespace> {
    return ask(this.session, "Namespace", "getNamespace", encodeGetNamespace(name), options);
  }

  /**
   * Deletes a namespace with all that is in it, by a job that goes on without the client. NamespaceNotEmpty: timers or schedules
   * are pending, and `cancelPending` is not set. JobRunning: another job changes something in it.
   */
  async delete(namespace: DeleteNamespace, options?: CallOptions): Promise<Job> {
    const idempotencyKey = namespace.idempotencyKey ?? crypto.randomUUID();
    const sent = encodeDeleteNamespace({ ...namespace, idempotencyKey });
    return (await ask(this.session, "JobAnswer", "deleteNamespace", sent, options)).job;
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

package tocsin

import (
	"context"

	"tocsin.dev/go/internal/rules"
)

// Namespaces have a secret, a retention and a default retry policy of their own.
type Namespaces struct{ part }

// Create creates a namespace. ErrNamespaceExists: there is one of this name. It is not repeated after a lost answer: the
// *TransportError has MaybeDone.
func (n *Namespaces) Create(ctx context.Context, namespace CreateNamespace) (*Namespace, error) {
	return ask[Namespace](ctx, &n.part, &call{operation: "createNamespace", body: constant(namespace), once: true})
}

// Update changes the given fields; null removes Secret and RetryPolicy.
func (n *Namespaces) Update(ctx context.Context, change UpdateNamespace) (*Namespace, error) {
	call := &call{operation: "updateNamespace", body: constant(change)}
	return update[Namespace](ctx, &n.part, call, namespaceNamed(change.Name))
}

// RotateSecret signs with a new secret, and during Grace with the former one, too. Only this answer shows the secret. It is not
// repeated after a lost answer.
func (n *Namespaces) RotateSecret(ctx context.Context, rotation RotateSecret) (*RotatedSecret, error) {
	return ask[RotatedSecret](ctx, &n.part, &call{operation: "rotateNamespaceSecret", body: constant(rotation), once: true})
}

// Get returns a namespace and its settings. ErrNamespaceNotFound: there is none of this name.
func (n *Namespaces) Get(ctx context.Context, name string) (*Namespace, error) {
	return ask[Namespace](ctx, &n.part, namespaceNamed(name))
}

// Delete deletes a namespace with all that is in it, by a job that goes on without the client. ErrNamespaceNotEmpty: timers or
// schedules are pending, and CancelPending is not set. ErrJobRunning: another job changes something in it.
func (n *Namespaces) Delete(ctx context.Context, namespace DeleteNamespace) (*Job, error) {
	if namespace.IdempotencyKey == "" {
		namespace.IdempotencyKey = rules.NewUUID4().String()
	}
	answer, err := ask[JobAnswer](ctx, &n.part, &call{operation: "deleteNamespace", body: constant(namespace)})
	if err != nil {
		return nil, err
	}
	return &answer.Job, nil
}

// List returns all namespaces that the key may see.
func (n *Namespaces) List(ctx context.Context) ([]Namespace, error) {
	found, err := ask[NamespaceList](ctx, &n.part, &call{operation: "listNamespaces", body: constant(noMembers{})})
	if err != nil {
		return nil, err
	}
	return found.Namespaces, nil
}

// ClusterView shows the servers.
type ClusterView struct{ part }

// Get returns nodes and shards.
func (c *ClusterView) Get(ctx context.Context) (*Cluster, error) {
	return ask[Cluster](ctx, &c.part, &call{operation: "getCluster"})
}

// Statistics returns what happened, slot by slot, on all nodes: in a namespace, or in all that the key may see.
func (c *ClusterView) Statistics(ctx context.Context, wanted GetStatistics) (*Statistics, error) {
	return ask[Statistics](ctx, &c.part, &call{operation: "getStatistics", body: constant(wanted)})
}

func namespaceNamed(name string) *call {
	return &call{operation: "getNamespace", body: constant(GetNamespace{Name: name})}
}

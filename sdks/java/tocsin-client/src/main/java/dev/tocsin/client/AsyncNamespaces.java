package dev.tocsin.client;

import dev.tocsin.client.error.JobRunningException;
import dev.tocsin.client.error.NamespaceExistsException;
import dev.tocsin.client.error.NamespaceNotEmptyException;
import dev.tocsin.client.error.NamespaceNotFoundException;
import dev.tocsin.client.model.CreateNamespace;
import dev.tocsin.client.model.DeleteNamespace;
import dev.tocsin.client.model.GetNamespace;
import dev.tocsin.client.model.Job;
import dev.tocsin.client.model.JobAnswer;
import dev.tocsin.client.model.Namespace;
import dev.tocsin.client.model.NamespaceList;
import dev.tocsin.client.model.RotateSecret;
import dev.tocsin.client.model.RotatedSecret;
import dev.tocsin.client.model.UpdateNamespace;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;

/** Namespaces: timers with a secret, a retention and a default retry policy of their own; for programs that do not block. */
public final class AsyncNamespaces {
    private final Steps steps;

    AsyncNamespaces(Steps steps) {
        this.steps = steps;
    }

    /**
     * Creates a namespace. A lost answer is not followed by a retry: a TransportException with {@code maybeDone}.
     *
     * @param namespace its name, and what differs from the defaults
     * @return the namespace; fails with {@link NamespaceExistsException} if there is one of this name
     */
    public CompletableFuture<Namespace> create(CreateNamespace namespace) {
        return steps.ask(Call.of(Operation.CREATE_NAMESPACE, namespace.toJson()).unsafe(), Namespace::fromJson);
    }

    /**
     * Changes a namespace.
     *
     * @param change what to change; absent fields stay, {@code Field.ofNull()} removes
     * @return the namespace after the change
     */
    public CompletableFuture<Namespace> update(UpdateNamespace change) {
        Call get = Call.of(Operation.GET_NAMESPACE, GetNamespace.of(change.name()).toJson());
        return steps.update(Call.of(Operation.UPDATE_NAMESPACE, change.toJson()), get, Namespace::fromJson);
    }

    /**
     * Signs with a new secret, and for a while with the former one, too. A lost answer is not followed by a retry.
     *
     * @param rotation which namespace, and how
     * @return the secret; no later answer shows it
     */
    public CompletableFuture<RotatedSecret> rotateSecret(RotateSecret rotation) {
        return steps.ask(Call.of(Operation.ROTATE_NAMESPACE_SECRET, rotation.toJson()).unsafe(), RotatedSecret::fromJson);
    }

    /**
     * Reads a namespace and its settings.
     *
     * @param name its name
     * @return the namespace; fails with {@link NamespaceNotFoundException} if there is none of this name
     */
    public CompletableFuture<Namespace> get(String name) {
        return steps.ask(Call.of(Operation.GET_NAMESPACE, GetNamespace.of(name).toJson()), Namespace::fromJson);
    }

    /**
     * Deletes a namespace with all that is in it, by a job that goes on without the client.
     *
     * @param namespace its name, and whether pending timers and schedules may go with it
     * @return the job; fails with {@link NamespaceNotEmptyException} if there are some that may not, or with
     *     {@link JobRunningException} if another job changes something in it
     */
    public CompletableFuture<Job> delete(DeleteNamespace namespace) {
        DeleteNamespace keyed = namespace.idempotencyKey().isPresent()
                ? namespace
                : namespace.idempotencyKey(UUID.randomUUID().toString());
        return steps.ask(Call.of(Operation.DELETE_NAMESPACE, keyed.toJson()), JobAnswer::fromJson)
                .thenApply(JobAnswer::job);
    }

    /**
     * Lists all namespaces that the key may see.
     *
     * @return the namespaces
     */
    public CompletableFuture<List<Namespace>> list() {
        return steps.ask(Call.of(Operation.LIST_NAMESPACES, Json.object()),
                NamespaceList::fromJson).thenApply(NamespaceList::namespaces);
    }
}

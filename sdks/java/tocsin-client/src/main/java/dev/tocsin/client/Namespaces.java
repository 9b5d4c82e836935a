package dev.tocsin.client;

import dev.tocsin.client.error.JobRunningException;
import dev.tocsin.client.error.NamespaceExistsException;
import dev.tocsin.client.error.NamespaceNotEmptyException;
import dev.tocsin.client.error.NamespaceNotFoundException;
import dev.tocsin.client.model.CreateNamespace;
import dev.tocsin.client.model.DeleteNamespace;
import dev.tocsin.client.model.Job;
import dev.tocsin.client.model.Namespace;
import dev.tocsin.client.model.RotateSecret;
import dev.tocsin.client.model.RotatedSecret;
import dev.tocsin.client.model.UpdateNamespace;
import java.util.List;

/** Namespaces: timers with a secret, a retention and a default retry policy of their own. */
public final class Namespaces {
    private final AsyncNamespaces async;

    Namespaces(AsyncNamespaces async) {
        this.async = async;
    }

    /**
     * Creates a namespace. A lost answer is not followed by a retry: a TransportException with {@code maybeDone}.
     *
     * @param namespace its name, and what differs from the defaults
     * @return the namespace
     * @throws NamespaceExistsException if there is one of this name
     */
    public Namespace create(CreateNamespace namespace) {
        return Run.join(async.create(namespace));
    }

    /**
     * Changes a namespace.
     *
     * @param change what to change; absent fields stay, {@code Field.ofNull()} removes
     * @return the namespace after the change
     */
    public Namespace update(UpdateNamespace change) {
        return Run.join(async.update(change));
    }

    /**
     * Signs with a new secret, and for a while with the former one, too. A lost answer is not followed by a retry.
     *
     * @param rotation which namespace, and how
     * @return the secret; no later answer shows it
     */
    public RotatedSecret rotateSecret(RotateSecret rotation) {
        return Run.join(async.rotateSecret(rotation));
    }

    /**
     * Reads a namespace and its settings.
     *
     * @param name its name
     * @return the namespace
     * @throws NamespaceNotFoundException if there is none of this name
     */
    public Namespace get(String name) {
        return Run.join(async.get(name));
    }

    /**
     * Deletes a namespace with all that is in it, by a job that goes on without the client.
     *
     * @param namespace its name, and whether pending timers and schedules may go with it
     * @return the job
     * @throws NamespaceNotEmptyException if there are some that may not
     * @throws JobRunningException if another job changes something in it
     */
    public Job delete(DeleteNamespace namespace) {
        return Run.join(async.delete(namespace));
    }

    /**
     * Lists all namespaces that the key may see.
     *
     * @return the namespaces
     */
    public List<Namespace> list() {
        return Run.join(async.list());
    }
}

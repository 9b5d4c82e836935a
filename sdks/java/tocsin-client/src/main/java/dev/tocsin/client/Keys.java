package dev.tocsin.client;

import dev.tocsin.client.error.KeyNotFoundException;
import dev.tocsin.client.model.CreateKey;
import dev.tocsin.client.model.CreatedKey;
import dev.tocsin.client.model.ShownKey;
import java.util.List;

/** API keys: for clients with a key of the role admin. */
public final class Keys {
    private final AsyncKeys async;

    Keys(AsyncKeys async) {
        this.async = async;
    }

    /**
     * Creates a key. A lost answer is not followed by a retry: a TransportException with {@code maybeDone}.
     *
     * @param key its role, and what it is limited to
     * @return the key; no later answer shows it
     */
    public CreatedKey create(CreateKey key) {
        return Run.join(async.create(key));
    }

    /**
     * Lists the keys that the client's own key may see, oldest first.
     *
     * @return the keys without their secret parts, also expired ones
     */
    public List<ShownKey> list() {
        return Run.join(async.list());
    }

    /**
     * Revokes a key.
     *
     * @param keyId its id
     * @throws KeyNotFoundException if there is none
     */
    public void revoke(String keyId) {
        Run.join(async.revoke(keyId));
    }
}

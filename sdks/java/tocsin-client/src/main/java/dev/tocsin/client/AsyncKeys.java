package dev.tocsin.client;

import dev.tocsin.client.error.KeyNotFoundException;
import dev.tocsin.client.model.CreateKey;
import dev.tocsin.client.model.CreatedKey;
import dev.tocsin.client.model.KeyList;
import dev.tocsin.client.model.RevokeKey;
import dev.tocsin.client.model.ShownKey;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** API keys: for clients with a key of the role admin, and for programs that do not block. */
public final class AsyncKeys {
    private final Steps steps;

    AsyncKeys(Steps steps) {
        this.steps = steps;
    }

    /**
     * Creates a key. A lost answer is not followed by a retry: a TransportException with {@code maybeDone}.
     *
     * @param key its role, and what it is limited to
     * @return the key; no later answer shows it
     */
    public CompletableFuture<CreatedKey> create(CreateKey key) {
        return steps.ask(Call.of(Operation.CREATE_KEY, key.toJson()).unsafe(), CreatedKey::fromJson);
    }

    /**
     * Lists the keys that the client's own key may see, oldest first.
     *
     * @return the keys without their secret parts, also expired ones
     */
    public CompletableFuture<List<ShownKey>> list() {
        return steps.ask(Call.of(Operation.LIST_KEYS, Json.object()), KeyList::fromJson).thenApply(KeyList::keys);
    }

    /**
     * Revokes a key.
     *
     * @param keyId its id
     * @return completed when it is done; fails with {@link KeyNotFoundException} if there is none
     */
    public CompletableFuture<Void> revoke(String keyId) {
        Call list = Call.of(Operation.LIST_KEYS, Json.object());
        return steps.delete(
                Call.of(Operation.REVOKE_KEY, RevokeKey.of(keyId).toJson()), list,
                found -> KeyList.fromJson(found).keys().stream().noneMatch(each -> each.keyId().equals(keyId)));
    }
}

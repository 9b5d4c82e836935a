package tocsin

import (
	"context"
	"errors"
	"iter"
)

// Keys are the API keys of the server. All operations require a key of role admin.
type Keys struct{ part }

// Create creates a key; only this answer shows it. It can't exceed the client's own key. Other nodes accept it within the
// setting keys_refresh. It is not repeated after a lost answer: the *TransportError has MaybeDone.
func (k *Keys) Create(ctx context.Context, key CreateKey) (*CreatedKey, error) {
	return ask[CreatedKey](ctx, &k.part, &call{operation: "createKey", body: constant(key), once: true})
}

// List returns the keys within the scope of the client's own key, oldest first, expired ones included.
func (k *Keys) List(ctx context.Context) ([]ShownKey, error) {
	found, err := ask[KeyList](ctx, &k.part, &call{operation: "listKeys", body: constant(noMembers{})})
	if err != nil {
		return nil, err
	}
	return found.Keys, nil
}

// Revoke revokes a key, and ends its sign-ins. Other nodes refuse it within the setting keys_refresh. ErrKeyNotFound: there is none
// with this id.
func (k *Keys) Revoke(ctx context.Context, keyID string) error {
	if k.err != nil {
		return k.err
	}
	revoke := &call{operation: "revokeKey", body: constant(RevokeKey{KeyID: keyID})}
	answer, mayBeDone, err := k.session.perform(ctx, revoke, k.limits)
	if mayBeDone && errors.Is(err, ErrKeyNotFound) {
		return nil // an earlier try has revoked it: its answer was lost
	}
	if err != nil {
		return err
	}
	return checkEmpty(answer)
}

// Audit is the trail of sign-ins, and of changes of keys and namespaces. It requires a key of role admin that is not limited.
type Audit struct{ part }

// List reads all entries that match, newest first; query.Limit is the size of a page.
func (a *Audit) List(ctx context.Context, query ListAudit) iter.Seq2[*AuditEntry, error] {
	return elements(a.ListPages(ctx, query))
}

// ListPages is List by the page.
func (a *Audit) ListPages(ctx context.Context, query ListAudit) iter.Seq2[[]AuditEntry, error] {
	return pages(ctx, func(ctx context.Context, cursor string) ([]AuditEntry, string, error) {
		if cursor != "" {
			query.Cursor = cursor
		}
		page, err := ask[AuditPage](ctx, &a.part, &call{operation: "listAudit", body: constant(query)})
		if err != nil {
			return nil, "", err
		}
		return page.Entries, page.NextCursor, nil
	})
}

package tocsin

import (
	"context"
	"iter"
)

// Credentials are what requests identify themselves with: passwords, tokens, certificates. Timers, schedules and hooks name them.
// No answer has their secrets. Put, Test and Delete need a key with the role admin for the namespace.
type Credentials struct{ part }

// Put creates the credential, or replaces all that it has; without a secret it keeps the stored one, unless that would be sent
// elsewhere. When it returns, every node sends it as it is now. ErrTooManyCredentials: the namespace has as many as it can have.
// ErrVersionConflict: it has not the expected version; 0: there must be none.
func (c *Credentials) Put(ctx context.Context, credential PutCredential) (*Credential, error) {
	put := &call{operation: "putCredential", body: constant(credential)}
	return update[Credential](ctx, &c.part, put, credentialNamed(credential.Namespace, credential.Name))
}

// Get returns the credential without its secret. ErrCredentialNotFound: there is none.
func (c *Credentials) Get(ctx context.Context, namespace, name string) (*Credential, error) {
	return ask[Credential](ctx, &c.part, credentialNamed(namespace, name))
}

// List reads the credentials of a namespace, by name, without their secrets; query.Limit is the size of a page.
func (c *Credentials) List(ctx context.Context, query ListCredentials) iter.Seq2[*Credential, error] {
	return elements(c.ListPages(ctx, query))
}

// ListPages is List by the page.
func (c *Credentials) ListPages(ctx context.Context, query ListCredentials) iter.Seq2[[]Credential, error] {
	return pages(ctx, func(ctx context.Context, cursor string) ([]Credential, string, error) {
		if cursor != "" {
			query.Cursor = cursor
		}
		page, err := ask[CredentialPage](ctx, &c.part, &call{operation: "listCredentials", body: constant(query)})
		if err != nil {
			return nil, "", err
		}
		return page.Credentials, page.NextCursor, nil
	})
}

// Test tries the credential: it fetches or signs the token, and opens a connection to each host, or sends HEAD to a URL.
// ErrCredentialNotFound: there is none.
func (c *Credentials) Test(ctx context.Context, credential TestCredential) (*TestedCredential, error) {
	return ask[TestedCredential](ctx, &c.part, &call{operation: "testCredential", body: constant(credential)})
}

// Delete deletes a credential: what names it waits until there is one of its name. ErrCredentialNotFound: there is none.
func (c *Credentials) Delete(ctx context.Context, namespace, name string) error {
	return c.deleteCredential(ctx, DeleteCredential{Namespace: namespace, Name: name})
}

// DeleteVersion is Delete of this version only. ErrVersionConflict: the credential has another one.
func (c *Credentials) DeleteVersion(ctx context.Context, namespace, name string, version int) error {
	return c.deleteCredential(ctx, DeleteCredential{Namespace: namespace, Name: name, ExpectedVersion: Some(version)})
}

func (c *Credentials) deleteCredential(ctx context.Context, credential DeleteCredential) error {
	remove := &call{operation: "deleteCredential", body: constant(credential)}
	return c.delete(ctx, remove, credentialNamed(credential.Namespace, credential.Name), func(*reply) (bool, error) { return false, nil })
}

func credentialNamed(namespace, name string) *call {
	return &call{operation: "getCredential", body: constant(CredentialId{Namespace: namespace, Name: name})}
}

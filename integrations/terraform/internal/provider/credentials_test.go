package provider

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"tocsin.dev/go/tocsin"
)

// What names a credential keeps it through another change, shows one that was named by hand, and loses it with the argument
// alone.
func TestRequestsNameCredentials(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	f.credential(namespace, "shop-api", "shop.example")
	f.credential(namespace, "ops-api", "ops.example")
	alerts := func(credential any) tree { return tree{"url": "https://ops.example/alerts", "credential": credential} }
	for of, each := range map[string]struct {
		configured tree
		arguments  tree
		id         string
	}{
		"tocsin_schedule": {
			tree{"namespace": namespace, "id": "report", "cron": "@daily", "callback_url": receiver, "description": "Sales"},
			tree{"credential": "shop-api", "on_failure": alerts("ops-api"), "on_paused": alerts("ops-api")},
			namespace + "/report",
		},
		"tocsin_monitor": {
			tree{"namespace": namespace, "id": "backup", "every": "1h", "description": "Backups"},
			tree{"on_late": alerts("ops-api"), "on_recovery": alerts("ops-api")},
			namespace + "/backup",
		},
	} {
		t.Run(of, func(*testing.T) {
			it := f.resource(of)
			named := with(each.configured, each.arguments)
			it.apply(named)
			it.apply(with(named, tree{"description": "Another"}))
			imported := f.resource(of)
			imported.importAs(each.id)
			imported.unchanged(with(named, tree{"description": "Another"}))
			for name, argument := range each.arguments {
				var without any
				if hook, ok := argument.(tree); ok {
					without = with(hook, tree{"credential": nil})
				}
				changes := []string{name, hasSecrets, "version"}
				slices.Sort(changes)
				it.differs(with(named, tree{"description": "Another", name: without}), changes...)
			}
			it.apply(each.configured)
		})
	}
	found, err := f.client.Schedules.Get(t.Context(), namespace, "report")
	if err != nil || found.Credential != "" {
		t.Error("the schedule has a credential still", found, err)
	}
}

func TestNotificationsOfNamespacesNameCredentials(t *testing.T) {
	f := newTerraform(t, nil)
	it := f.resource("tocsin_namespace")
	plain := tree{"name": "naming-shop", "on_failure": tree{"url": "https://ops.example/alerts"}}
	it.apply(plain)
	f.credential("naming-shop", "ops-api", "ops.example")
	named := with(plain, tree{"on_failure": tree{"url": "https://ops.example/alerts", "credential": "ops-api"}})
	it.apply(named)
	byHand := tocsin.UpdateNamespace{
		Name: "naming-shop", OnFailure: tocsin.Some(tocsin.Hook{URL: "https://ops.example/alerts"}),
	}
	if _, err := f.client.Namespaces.Update(t.Context(), byHand); err != nil {
		t.Fatal(err)
	}
	it.refresh()
	it.differs(named, hasSecrets, "on_failure", "signed", "version")
	it.apply(named)
	it.refused(it.try(with(plain, tree{"on_failure": tree{"url": "https://shop.example/", "credential": "ops-api"}})),
		`AttributeName("on_failure").AttributeName("credential")`, "")
}

func TestCredentialFromCreationToDestruction(t *testing.T) {
	f := newTerraform(t, tree{"managed_by": "shop"})
	namespace := f.namespace()
	configured := tree{"namespace": namespace, "name": "billing", "type": "bearer", "token": "planted-1"}
	it := f.resource("tocsin_credential")
	it.refused(it.try(with(configured, tree{"token": nil})), `AttributeName("token")`, "is missing")
	it.apply(configured)
	it.has(tree{"hosts": []any{}, "managed_by": "shop", "version": 1, "client_authentication": nil, "lifetime": nil})
	it.refused(f.resource(it.of).try(configured), "", "exists already; import it")

	changed := with(configured, tree{"hosts": []string{"shop.example", "http://hooks.internal:8080"}, "description": "Bills"})
	it.apply(changed)
	it.has(tree{"version": 2, "description": "Bills"})
	imported := f.resource(it.of)
	imported.importAs(namespace + "/billing")
	imported.unchanged(changed)
	found, problems := f.data(it.of, tree{"namespace": namespace, "name": "billing"})
	f.none(problems)
	if found["type"] != "bearer" || len(found["hosts"].([]any)) != 2 {
		t.Error(found)
	}

	// Without its secret it keeps the one that it has, unless that would be sent elsewhere.
	it.apply(with(changed, tree{"token": nil, "description": "All bills"}))
	elsewhere := with(changed, tree{"token": nil, "hosts": []string{"ops.example"}})
	it.refused(it.try(elsewhere), `AttributeName("token")`, "send it again")

	// By hand: what is shown, and what is in between.
	it.refresh()
	f.credential(namespace, "billing", "shop.example")
	it.refused(it.try(changed), "", "plan again")
	it.refused(it.try(nil), "", "plan again")
	it.refresh()
	it.differs(changed, "description", "hosts", "version")
	it.apply(changed)

	// Of another type, it has what that fills in.
	issued := tree{
		"namespace": namespace, "name": "billing", "type": "oauth2ClientCredentials", "hosts": []string{"shop.example"},
		"token_url": "https://login.example/token", "client_id": "tocsin", "client_secret": "planted-2",
	}
	it.apply(issued)
	it.has(tree{"client_authentication": "basic", "description": nil})
	it.apply(with(issued, tree{"client_authentication": "post", "scope": "bills"}))
	it.apply(issued)
	it.has(tree{"client_authentication": "basic", "scope": nil})
	it.apply(tree{"namespace": namespace, "name": "billing", "type": "basic", "username": "tocsin", "password": "planted-3"})
	it.has(tree{"client_authentication": nil})
	it.without("planted", nil)

	if err := f.client.Credentials.Delete(t.Context(), namespace, "billing"); err != nil {
		t.Fatal(err)
	}
	it.refresh()
	if !it.state.IsNull() {
		t.Fatal("a credential that was deleted is still in the state")
	}
	it.apply(configured)
	it.apply(nil)
	if _, err := f.client.Credentials.Get(t.Context(), namespace, "billing"); !errors.Is(err, tocsin.ErrCredentialNotFound) {
		t.Fatal("the credential is still there", err)
	}
}

// Whether a credential's secret differs, a dry run shows.
func TestSecretsOfCredentials(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	secret := func(mark string) tree {
		return tree{
			"namespace": namespace, "name": "billing", "type": "bearer", "hosts": []string{"shop.example"}, "token": mark,
		}
	}
	it := f.resource("tocsin_credential")
	it.apply(secret("planted-1"))
	_, plan := it.plan(secret("planted-2"))
	if len(plan.Diagnostics) != 1 || !strings.Contains(plan.Diagnostics[0].Detail, "has another secret") {
		t.Error("the plan does not state why", plan.Diagnostics)
	}
	it.without("planted", plan.Diagnostics)
	it.differs(secret("planted-2"), "version")
	it.has(tree{"version": 1})
	it.apply(secret("planted-2"))
	it.has(tree{"version": 2})

	f.credential(namespace, "billing", "shop.example") // another token, by hand
	it.refresh()
	it.has(tree{"version": 3})
	it.differs(secret("planted-2"), "version")
	it.apply(secret("planted-2"))
	it.without("planted", nil)
}

func TestHostsAreWrittenAsTheServerDoes(t *testing.T) {
	f := newTerraform(t, nil)
	it := f.resource("tocsin_credential")
	namespace := f.namespace()
	for host, short := range map[string]string{
		"Shop.example": "shop.example", "shop.example:443": "shop.example", "https://shop.example:8443": "shop.example:8443",
		"http://hooks.internal:80": "http://hooks.internal",
	} {
		configured := tree{"namespace": namespace, "name": "a", "type": "bearer", "token": "planted", "hosts": []string{host}}
		it.refused(it.validate(configured), `AttributeName("hosts")`, "which the server writes as "+short+"; write it so")
		f.credential(namespace, "a", host)
		found, err := f.client.Credentials.Get(t.Context(), namespace, "a")
		if err != nil || !slices.Equal(found.Hosts, []string{short}) {
			t.Error("the server writes", found, err)
		}
	}
	f.none(it.validate(tree{"namespace": "a", "name": "a", "type": "basic", "hosts": []any{unknown, "a.example"}}))
}

// certified is a certificate that signs itself, and its key, in PEM.
func certified(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(1, 0, 0)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

func TestCredentialsWithCertificatesAndJwts(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	certificate, key := certified(t)
	it := f.resource("tocsin_credential")
	shown := tree{
		"namespace": namespace, "name": "client", "type": "mtls", "hosts": []string{"shop.example"}, "certificate": certificate,
		"ca": certificate,
	}
	it.apply(with(shown, tree{"private_key": key}))
	it.has(tree{"certificate": certificate, "ca": certificate})
	it.without("PRIVATE", nil)
	it.apply(with(shown, tree{"description": "Without its key"}))

	signed := tree{"namespace": namespace, "name": "signed", "type": "jwt", "audience": "https://shop.example"}
	it = f.resource(it.of)
	it.apply(signed)
	it.has(tree{"lifetime": "10m", "version": 1})
	it.unchanged(with(signed, tree{"lifetime": "600s"}))
	it.apply(with(signed, tree{"lifetime": "1800s"}))
	it.has(tree{"lifetime": "1800s", "version": 2})
	it.apply(signed)
	it.has(tree{"lifetime": "10m"})
}

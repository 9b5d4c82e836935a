package provider

import (
	"slices"
	"testing"

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
			for name := range each.arguments {
				changes := []string{name, hasSecrets, "version"}
				slices.Sort(changes)
				it.differs(with(named, tree{"description": "Another", name: nil}), changes...)
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

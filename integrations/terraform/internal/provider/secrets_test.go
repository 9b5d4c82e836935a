package provider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"tocsin.dev/go/tocsin"
)

// A signing secret, in two versions.
const (
	signing = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
	another = "whsec_BBECAwQFBgcICQoLDA0ODxAREhMUFRYX"
)

// secretsOf is a schedule with a secret in each place; `mark` is in all of them.
func secretsOf(namespace, mark string) tree {
	return tree{
		"namespace": namespace, "id": "secrets", "cron": "@daily",
		"secret_callback_url": "https://shop.example/hooks?token=" + mark,
		"headers":             tree{"x-shop": "7"}, "secret_headers": tree{"authorization": "Bearer " + mark},
		"on_failure": tree{"secret_url": "https://ops.example/alerts?code=" + mark, "secret_headers": tree{"x-api-key": mark}},
	}
}

// without fails where a state or a message has a text.
func (i *instance) without(mark string, messages []*tfprotov6.Diagnostic) {
	i.Helper()
	text := i.state.String()
	for _, each := range messages {
		text += each.Summary + each.Detail
	}
	if strings.Contains(text, mark) {
		i.Errorf("a secret is in %s", text)
	}
}

func TestSecretsAreComparedByTheServerAndNowhereElse(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	it := f.resource("tocsin_schedule")
	it.apply(secretsOf(namespace, "planted-1"))
	it.without("planted", nil)
	it.has(tree{
		"callback_url": "https://shop.example/hooks?token=[redacted]", "headers": tree{"x-shop": "7"}, "has_secrets": true,
		"version": 1,
	})

	_, plan := it.plan(secretsOf(namespace, "planted-2"))
	if len(plan.Diagnostics) != 1 || !strings.Contains(plan.Diagnostics[0].Detail, "has another secret") {
		t.Error("the plan does not state why", plan.Diagnostics)
	}
	it.without("planted", plan.Diagnostics)
	it.differs(secretsOf(namespace, "planted-2"), "callback_url", "has_secrets", "on_failure", "version")
	it.apply(secretsOf(namespace, "planted-2"))
	it.has(tree{"version": 2})
	it.without("planted", nil)

	// Somebody else's secret is seen.
	headers := tocsin.Some(map[string]string{"x-shop": "7", "authorization": "Bearer planted-3"})
	byHand := tocsin.UpdateSchedule{Namespace: namespace, ScheduleID: "secrets", Headers: headers}
	if _, err := f.client.Schedules.Update(t.Context(), byHand); err != nil {
		t.Fatal(err)
	}
	it.refresh()
	it.differs(secretsOf(namespace, "planted-2"), "callback_url", "has_secrets", "on_failure", "version")
	it.apply(secretsOf(namespace, "planted-2"))

	imported := f.resource("tocsin_schedule")
	imported.importAs(namespace + "/secrets")
	imported.unchanged(secretsOf(namespace, "planted-2"))
	imported.without("planted", nil)

	// One that the configuration has no more is removed.
	plain := tree{"namespace": namespace, "id": "secrets", "cron": "@daily", "callback_url": receiver}
	it.apply(plain)
	it.has(tree{"has_secrets": false, "headers": tree{}})
	if _, err := f.client.Schedules.Update(t.Context(), byHand); err != nil {
		t.Fatal(err)
	}
	it.refresh()
	it.apply(plain)
	found, err := f.client.Schedules.Get(t.Context(), namespace, "secrets")
	if err != nil || len(found.Headers) > 0 {
		t.Error("a secret header was left", found, err)
	}
}

func TestSecretsOfNamespaces(t *testing.T) {
	f := newTerraform(t, nil)
	configured := func(secret, mark string) tree {
		return tree{
			"name": "secret-shop", "secret": secret,
			"on_failure": tree{"url": "https://ops.example/", "secret_headers": tree{"authorization": "Bearer " + mark}},
		}
	}
	it := f.resource("tocsin_namespace")
	it.apply(configured(signing, "planted-1"))
	it.has(tree{"signed": true, "has_secrets": true, "version": 1})
	it.differs(configured(another, "planted-1"), "has_secrets", "signed", "version")
	it.differs(configured(signing, "planted-2"), "has_secrets", "signed", "version")
	it.apply(configured(another, "planted-2"))
	it.has(tree{"version": 2})
	it.without("planted", nil)
	it.without("whsec", nil)

	// A rotation by hand goes on when its secret comes into the configuration, and when something else changes.
	rotation := tocsin.RotateSecret{Name: "secret-shop", Secret: signing}
	rotated, err := f.client.Namespaces.RotateSecret(t.Context(), rotation)
	if err != nil {
		t.Fatal(err)
	}
	it.refresh()
	it.unchanged(configured(signing, "planted-2"))
	it.apply(with(configured(signing, "planted-2"), tree{"history": "failures"}))
	found, err := f.client.Namespaces.Get(t.Context(), "secret-shop")
	if err != nil || !found.PreviousSecretUntil.Equal(rotated.PreviousUntil) {
		t.Error("the rotation has ended", found, err)
	}

	it.apply(with(configured(signing, "planted-2"), tree{"secret": nil, "history": "none"}))
	it.has(tree{"signed": true})
	it.apply(tree{"name": "secret-shop"})
	it.has(tree{"signed": true, "has_secrets": false})
}

// Whether a monitor's secret differs, a dry run shows.
func TestSecretsOfMonitors(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	plain := tree{"namespace": namespace, "id": "backup", "every": "1h", "on_late": tree{"url": "https://ops.example/late"}}
	secret := func(mark string) tree {
		return with(plain, tree{"on_late": tree{"secret_url": "https://ops.example/late?token=" + mark}})
	}
	it := f.resource("tocsin_monitor")
	it.apply(secret("planted-1"))
	it.has(tree{"has_secrets": true, "version": 1})
	it.unchanged(secret("planted-1"))
	it.apply(secret("planted-2"))
	it.has(tree{"has_secrets": true, "version": 2})
	it.without("planted", nil)
	it.apply(plain)
	it.has(tree{"has_secrets": false, "version": 3})

	// One that was added by hand is removed, and one that was removed comes back.
	_, err := f.client.Monitors.Put(t.Context(), tocsin.PutMonitor{
		Namespace: namespace, ID: "backup", Every: time.Hour,
		OnLate: &tocsin.Hook{URL: "https://ops.example/late", Headers: map[string]string{"authorization": "Bearer planted"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	it.refresh()
	it.has(tree{"has_secrets": true})
	it.apply(plain)
	it.has(tree{"has_secrets": false, "version": 5})
	headed := with(plain, tree{"on_late": tree{
		"url": "https://ops.example/late", "secret_headers": tree{"authorization": "Bearer planted"},
	}})
	it.apply(headed)
	it.has(tree{"has_secrets": true, "version": 6})
}

func TestSecretsInOtherArgumentsAreRefused(t *testing.T) {
	f := newTerraform(t, nil)
	it := f.resource("tocsin_schedule")
	configured := tree{"namespace": "shop", "id": "secrets", "cron": "@daily", "callback_url": receiver}
	for at, changes := range map[string]tree{
		`AttributeName("headers").ElementKeyString("authorization")`: {"headers": tree{"authorization": "planted"}},
		`AttributeName("headers").ElementKeyString("x-shop")`:        {"headers": tree{"x-shop": "Bearer planted"}},
		`AttributeName("secret_headers").ElementKeyString("x-shop")`: {"secret_headers": tree{"x-shop": "planted"}},
		`AttributeName("callback_url")`:                              {"callback_url": receiver + "?token=planted"},
		`AttributeName("secret_callback_url")`: {
			"callback_url": nil, "secret_callback_url": receiver + "?shop=planted",
		},
		`AttributeName("on_failure").AttributeName("url")`: {"on_failure": tree{"url": "https://planted@shop.example"}},
		`AttributeName("on_paused").AttributeName("headers").ElementKeyString("cookie")`: {
			"on_paused": tree{"url": receiver, "headers": tree{"cookie": "planted"}},
		},
	} {
		found := it.validate(with(configured, changes))
		it.refused(found, at, "")
		it.without("planted", found)
	}
}

// The server is the one that knows what it hides.
func TestTheRuleOfSecretsIsTheServers(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	shown := func(address string, headers map[string]string) *tocsin.Schedule {
		t.Helper()
		found, err := f.client.Schedules.Create(t.Context(), tocsin.CreateSchedule{
			Namespace: namespace, ID: "tried", Cron: "@daily", CallbackURL: address, Headers: headers, DryRun: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for _, name := range []string{
		"x-shop", "Authorization", "cookie", "x-api-key", "x-api_key", "x-apikey", "api.key", "key", "x-key", "keys", "x-pin", "pin",
		"code",
		"sid", "SIG",
		"x-signature", "www-authenticate", "author", "x-author", "x-authored", "x-otp", "session-id", "license-key",
		"x-licence-key",
		"passport", "password",
		"x-encryption-key", "x-public-key", "masterkey", "x-bearer", "jwt", "x-csrf", "pwd", "pwds", "credentials",
		"subscription-key", "x-access-keys",
		"x-functions-key", "aeg-sas-key", "app.key", "x-honeycomb-team", "x-monkey", "x-cache-key", "partition_key", "idempotency-key",
	} {
		if hidden := shown(receiver, map[string]string{name: "7"}).Headers[name] == redacted; hidden != isSecretHeader(name, "7") {
			t.Errorf("the server hides header %s: %v", name, hidden)
		}
		address := receiver + "?" + name + "=7"
		if hidden := shown(address, nil).CallbackURL != address; hidden != hasSecret(address) {
			t.Errorf("the server hides a part of %s: %v", address, hidden)
		}
	}
	for _, value := range []string{"Bearer x", "bearer  x", "Bearer", "Basic eDp5", "Token 7", "tokens 7", "ApiKey 7",
		"Digest a=b", "digestive a", "x Bearer y"} {
		hidden := shown(receiver, map[string]string{"x-shop": value}).Headers["x-shop"] == redacted
		if hidden != isSecretHeader("x-shop", value) {
			t.Errorf("the server hides %q: %v", value, hidden)
		}
	}
	for _, address := range []string{
		"https://shop.example/a@b", "https://shop.example/?a=b@c", "https://shop.example/;token=7",
		"https://shop.example/?%74oken=7", "https://shop.example/?to%ken=7", "https://shop.example/?token",
		"https://shop.example/?token=", "https://shop.example/?a=1&pin=2",
		"https://shop.example/?a=token", "https://shop.example/?a+key=1", "https://shop.example/?api+key=1",
		"https://shop.example/?a=b;token=7", "https://shop.example/?app-key=7;a=b",
	} {
		if hidden := shown(address, nil).CallbackURL != address; hidden != hasSecret(address) {
			t.Errorf("the server hides a part of %s: %v", address, hidden)
		}
	}
}

func TestSecretsThatAreNotYetKnownAreWritten(t *testing.T) {
	f := newTerraform(t, nil)
	namespace := f.namespace()
	it := f.resource("tocsin_schedule")
	configured := secretsOf(namespace, "planted")
	it.apply(configured)
	it.differs(with(configured, tree{"secret_headers": tree{"authorization": unknown}}), "callback_url", "has_secrets",
		"on_failure", "version")
	if text := fmt.Sprint(it.state); strings.Contains(text, "planted") {
		t.Error("a secret is in the state")
	}
}

// Package tocsin is the client of Tocsin, the durable timer service: it calls your URL at an instant, at least once, whatever
// crashes.
//
//	client := tocsin.NewClient("http://127.0.0.1:8080")
//	timer, err := client.Timers.Create(ctx, tocsin.CreateTimer{
//		Namespace: "orders", ID: "order-17", CallbackURL: "https://shop.example/hooks/remind",
//		Delay: 24 * time.Hour, Payload: tocsin.JSON(order),
//	})
//
// Calls are repeated where that is safe, and a create that is repeated makes one timer. Package receiver handles the callbacks,
// package tocsintest has a server for tests.
package tocsin

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Version is that of this module.
const Version = "0.1.0"

// Client calls a Tocsin server, or any node of a cluster. Make one for the whole program; any number of goroutines may use it.
type Client struct {
	// Timers each call a URL at an instant.
	Timers *Timers
	// Schedules call a URL at the instants of a cron expression, or at intervals.
	Schedules *Schedules
	// Namespaces have a secret, a retention and a default retry policy of their own.
	Namespaces *Namespaces
	// Cluster shows the servers.
	Cluster *ClusterView

	part
}

// part is what the parts of a client have in common.
type part struct {
	session *session
	limits  limits
	// err is that of the client's options: every call returns it.
	err error
}

// Option is one of NewClient.
type Option interface{ configure(*config) error }

// Limit is an option that can also differ between views of a client: see Client.With.
type Limit func(*limits) error

type config struct {
	session   *session
	limits    limits
	transport *http.Transport
	routing   bool
}

type option func(*config) error

func (o option) configure(c *config) error { return o(c) }

func (l Limit) configure(c *config) error { return l(&c.limits) }

// WithKey sends the API key.
func WithKey(key string) Option {
	return option(func(c *config) error { c.session.key = key; return nil })
}

// WithOwnerRouting sends writes of timers to the nodes that store them. Clients have to reach the nodes themselves.
func WithOwnerRouting() Option {
	return option(func(c *config) error { c.routing = true; return nil })
}

// WithRequestHook calls the hook with the headers of each request, to which it may add, such as traceparent.
func WithRequestHook(hook func(ctx context.Context, header http.Header)) Option {
	return option(func(c *config) error { c.session.hook = hook; return nil })
}

// WithTLSConfig is for private certificate authorities and client certificates.
func WithTLSConfig(settings *tls.Config) Option {
	return option(func(c *config) error { c.transport.TLSClientConfig = settings; return nil })
}

// WithLogger logs warnings to this logger instead of the default one.
func WithLogger(logger *slog.Logger) Option {
	return option(func(c *config) error { c.session.log = logger; return nil })
}

// WithTimeout limits each call with all its retries; the default is 30 s. A context's deadline also counts.
func WithTimeout(timeout time.Duration) Limit {
	return func(l *limits) error {
		if timeout <= 0 {
			return fmt.Errorf("timeout: %v is not greater than zero", timeout)
		}
		l.timeout = timeout
		return nil
	}
}

// WithRetries limits the retries of each call; the default is 3, and 0 means none.
func WithRetries(retries int) Limit {
	return func(l *limits) error {
		if retries < 0 {
			return fmt.Errorf("retries: %d is negative; 0 means none", retries)
		}
		l.retries = retries
		return nil
	}
}

// NewClient makes a client of the server with this URL. It connects at the first call. If the URL or an option is wrong, each
// call returns an ErrInvalidArgument with the reason.
func NewClient(baseURL string, options ...Option) *Client {
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: connectTimeout,
		MaxConnsPerHost: connectionsPerHost, MaxIdleConns: 0, MaxIdleConnsPerHost: connectionsPerHost,
		IdleConnTimeout: idleTimeout, ForceAttemptHTTP2: true,
	}
	settings := &config{
		session:   &session{url: strings.TrimRight(baseURL, "/"), log: slog.Default(), random: random},
		limits:    limits{timeout: defaultTimeout, retries: defaultRetries},
		transport: transport,
	}
	settings.session.http = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	err := checkURL(baseURL)
	for _, each := range options {
		if wrong := each.configure(settings); err == nil && wrong != nil {
			err = invalidArgument(wrong)
		}
	}
	if settings.routing {
		settings.session.router = newRouter(settings.session)
	}
	return newClient(part{settings.session, settings.limits, err})
}

func newClient(shared part) *Client {
	return &Client{&Timers{shared}, &Schedules{shared}, &Namespaces{shared}, &ClusterView{shared}, shared}
}

func checkURL(text string) error {
	parsed, err := url.Parse(text)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" {
		return invalidArgument(fmt.Errorf("url: %q is not an http or https URL, such as http://127.0.0.1:8080", text))
	}
	return nil
}

// With returns this client with other limits. It shares the connections.
func (c *Client) With(others ...Limit) *Client {
	changed := c.part
	for _, each := range others {
		if wrong := each(&changed.limits); changed.err == nil && wrong != nil {
			changed.err = invalidArgument(wrong)
		}
	}
	return newClient(changed)
}

// Calls are the service calls of this tenant.
func (c *Client) Calls(tenantID string) *Calls { return &Calls{c.part, tenantID} }

// Close closes idle connections.
func (c *Client) Close() { c.session.http.CloseIdleConnections() }

// do performs a call.
func (p *part) do(ctx context.Context, c *call) (*reply, error) {
	if p.err != nil {
		return nil, p.err
	}
	answer, _, err := p.session.perform(ctx, c, p.limits)
	return answer, err
}

// ask performs a call and reads its answer.
func ask[T any](ctx context.Context, p *part, c *call) (*T, error) {
	answer, err := p.do(ctx, c)
	if err != nil {
		return nil, err
	}
	return readJSON[T](answer)
}

// readJSON reads an answer to a T. What is JSON may still not be Tocsin's, such as the answer of a health check.
func readJSON[T any](answer *reply) (*T, error) {
	result := new(T)
	if !json.Valid(answer.body) {
		return nil, foreign(answer, errors.New("it is not JSON"))
	}
	if err := decodeValue(answer.body, result); err != nil {
		return nil, foreign(answer, err)
	}
	return result, nil
}

// foreign is the error of an answer that no Tocsin server gives.
func foreign(answer *reply, reason error) *APIError {
	return &APIError{Status: answer.status, Message: fmt.Sprintf(
		"the answer is not Tocsin's (%v): %q; check that the URL is that of a Tocsin server", reason, startOf(answer),
	)}
}

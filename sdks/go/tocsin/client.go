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
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"tocsin.dev/go/internal/rules"
)

// Version is that of this module.
const Version = "0.1.0"

// Client calls a Tocsin server, or any node of a cluster. Make one for the whole program; any number of goroutines may use it.
type Client struct {
	// Timers each call a URL at an instant.
	Timers *Timers
	// Schedules call a URL at the instants of a cron expression, or at intervals.
	Schedules *Schedules
	// Failures are timers and occurrences of schedules that failed.
	Failures *Failures
	// Jobs change many timers or schedules.
	Jobs *Jobs
	// Namespaces have a secret, a retention and a default retry policy of their own.
	Namespaces *Namespaces
	// Flows are rules that limit how many attempts begin, and are in flight at once.
	Flows *Flows
	// Calendars are dates by name that schedules skip, or on which alone they fire.
	Calendars *Calendars
	// Credentials are what requests identify themselves with, by name.
	Credentials *Credentials
	// Monitors know when jobs should report, and notify when one does not.
	Monitors *Monitors
	// Destinations are the hosts to which timers are sent.
	Destinations *Destinations
	// Cluster shows the servers.
	Cluster *ClusterView
	// Keys are the server's API keys.
	Keys *Keys
	// Audit is the trail of changes of keys and namespaces.
	Audit *Audit

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

// WithKey sends the API key. White space around it, such as the line feed of a file, is ignored.
func WithKey(key string) Option {
	return option(func(c *config) error {
		trimmed, err := rules.Key(key)
		c.session.authorization = []string{"Bearer " + trimmed}
		return err
	})
}

// WithOwnerRouting sends writes of timers to the nodes that store them. Clients have to reach the nodes themselves.
func WithOwnerRouting() Option {
	return option(func(c *config) error { c.routing = true; return nil })
}

// WithRequestHook calls the hook with the headers of each request, to which it may add, such as traceparent.
func WithRequestHook(hook func(ctx context.Context, header http.Header)) Option {
	return option(func(c *config) error { c.session.hook = hook; return nil })
}

// WithOnTry calls the hook after each try of each call, also after those that succeed, in the goroutine of the call. A panic of
// the hook is logged, and the call goes on.
func WithOnTry(hook func(Try)) Option {
	return option(func(c *config) error { c.session.onTry = hook; return nil })
}

// WithHTTPClient sends requests with this client: for another http.RoundTripper, such as one for traces, a Unix socket, a proxy
// or tests. Redirects are not followed unless it has a CheckRedirect. The time limits of calls and tries count also with it, the
// limits of connections do not. Close leaves its connections alone.
func WithHTTPClient(client *http.Client) Option {
	return option(func(c *config) error {
		if client == nil {
			return errors.New("http client: is nil; give one, or leave the option out")
		}
		given := *client
		if given.CheckRedirect == nil {
			given.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		}
		c.session.send = given.Do
		return nil
	})
}

// WithTLSConfig is for private certificate authorities and client certificates. The protocol is HTTP/1.1. With WithHTTPClient,
// configure the transport of that client instead.
func WithTLSConfig(settings *tls.Config) Option {
	return option(func(c *config) error {
		if settings != nil {
			settings = settings.Clone()
			settings.NextProtos = []string{"http/1.1"}
		}
		c.transport.TLSClientConfig = settings
		return nil
	})
}

// WithLogger logs to this logger instead of the default one: warnings, and each try at debug level.
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

// WithRetries limits the retries of each call; 0 means none. By default a call is repeated until its time is over.
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
		IdleConnTimeout: idleTimeout,
		// No HTTP/2: if its one connection dies without a word, a try that gets no answer leaves it in use, and all retries fail on it.
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	settings := &config{
		session: &session{random: random}, limits: limits{timeout: defaultTimeout, retries: unlimitedRetries}, transport: transport,
	}
	address, err := rules.BaseURL(baseURL)
	settings.session.url = address
	for _, each := range options {
		if wrong := each.configure(settings); err == nil {
			err = wrong
		}
	}
	if settings.session.send == nil {
		settings.session.send, settings.session.close = transport.RoundTrip, transport.CloseIdleConnections
	} else if err == nil && transport.TLSClientConfig != nil {
		err = errors.New("tls config: has no effect on the client of WithHTTPClient; set it in that client's transport")
	}
	if settings.routing {
		settings.session.router = newRouter(settings.session)
	}
	if err != nil {
		err = invalidArgument(err)
	}
	return newClient(part{settings.session, settings.limits, err})
}

func newClient(shared part) *Client {
	return &Client{
		&Timers{shared}, &Schedules{shared}, &Failures{shared}, &Jobs{shared}, &Namespaces{shared}, &Flows{shared},
		&Calendars{shared}, &Credentials{shared}, &Monitors{shared}, &Destinations{shared}, &ClusterView{shared}, &Keys{shared},
		&Audit{shared}, shared,
	}
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
func (c *Client) Close() {
	if c.session.close != nil {
		c.session.close()
	}
}

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

// execute performs a call whose answer is empty.
func (p *part) execute(ctx context.Context, c *call) error {
	answer, err := p.do(ctx, c)
	if err != nil {
		return err
	}
	return checkEmpty(answer)
}

func checkEmpty(answer *reply) error {
	if answer.status != http.StatusNoContent {
		return foreign(answer, errors.New("it would be 204, without a body"))
	}
	return nil
}

// readJSON reads an answer to a T. What is JSON may still not be Tocsin's, such as the answer of a health check.
func readJSON[T any](answer *reply) (*T, error) {
	result := new(T)
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

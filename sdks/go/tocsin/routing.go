package tocsin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"tocsin.dev/go/internal/rules"
)

const (
	mapRenewedEvery = 30 * time.Second
	mapJitter       = 0.2
	// After a sign that the map is wrong it is read again, at most this often.
	renewalsApart = time.Second
	// So long a node that failed gets no requests.
	avoidedFor = 5 * time.Second
)

// place is the timer that a request writes.
type place struct{ namespace, timerID string }

// ownerMap is the shards' owners, as a node sees them: a base URL for each shard, empty where only the client's own URL serves.
type ownerMap struct {
	urls      []string
	numShards map[string]int
}

// router knows which node owns a timer. A wrong answer costs time, never correctness: any node forwards. It reads the map when
// a write needs it, and again as soon as something contradicts it.
type router struct {
	session *session

	mutex    sync.Mutex
	disabled bool
	owners   *ownerMap
	etag     string
	// due is when the map is read next; zero: before the first write.
	due     time.Time
	readAt  time.Time
	reading bool
	avoided map[string]time.Time
}

func newRouter(s *session) *router { return &router{session: s, avoided: map[string]time.Time{}} }

// baseFor is the URL of the node to send this write to.
func (r *router) baseFor(ctx context.Context, p place, s *session) string {
	r.mutex.Lock()
	renews := !r.disabled && !r.reading && !time.Now().Before(r.due)
	if renews {
		r.reading = true
		r.readAt = time.Now()
	}
	etag := r.etag
	r.mutex.Unlock()
	if renews {
		r.renew(ctx, s, etag)
	}
	return r.urlOf(p)
}

// urlOf goes by the present map: the owner's URL, or the client's own where no owner is known or it failed recently.
func (r *router) urlOf(p place) string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	shard, ok := r.shardOf(p)
	if !ok || r.owners.urls[shard] == "" || time.Now().Before(r.avoided[r.owners.urls[shard]]) {
		return r.session.url
	}
	return r.owners.urls[shard]
}

func (r *router) shardOf(p place) (int, bool) {
	if r.disabled || r.owners == nil || r.owners.numShards[p.namespace] == 0 {
		return 0, false
	}
	return rules.ShardOf(p.namespace, p.timerID, r.owners.numShards[p.namespace], len(r.owners.urls)), true
}

// observe takes note of what became of a write that was sent to this node; without an answer it is nil.
func (r *router) observe(base string, answer *reply) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	failed := answer == nil || answer.status == http.StatusServiceUnavailable
	stale := failed || answer.header.Get("tocsin-forwarded") == "1"
	if failed && base != r.session.url {
		r.avoided[base] = time.Now().Add(avoidedFor)
	}
	if stale && (base != r.session.url || answer != nil) {
		soon := r.readAt.Add(renewalsApart)
		if now := time.Now(); soon.Before(now) {
			soon = now
		}
		if soon.Before(r.due) {
			r.due = soon
		}
	}
}

// check switches routing off if the server stores timers elsewhere than this version reckons.
func (r *router) check(p place, shardID int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if shard, ok := r.shardOf(p); ok && shard != shardID {
		r.disable("the server stores timers in other shards than this version expects")
	}
}

func (r *router) disable(reason string) {
	r.disabled = true
	r.session.logger().Warn("owner routing is off", "reason", reason, "all_requests_go_to", r.session.url)
}

func (r *router) renew(ctx context.Context, s *session, etag string) {
	condition := http.Header{}
	if etag != "" {
		condition.Set("if-none-match", etag)
	}
	view, refused := s.read(ctx, &call{operation: "getCluster", query: url.Values{"view": {"owners"}}, header: condition})
	names, failed := s.read(ctx, &call{operation: "listNamespaces", body: constant(noMembers{})})
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.reading = false
	spread := 1 + mapJitter*(2*s.random()-1)
	r.due = time.Now().Add(time.Duration(float64(mapRenewedEvery) * spread))
	var answered *APIError
	if errors.As(refused, &answered) && (answered.Status == 400 || answered.Status == 403 || answered.Status == 404) {
		r.disable("the owners of shards can't be read: " + refused.Error())
		return
	}
	if refused == nil && failed == nil {
		failed = r.update(view, names)
	}
	if refused != nil || failed != nil {
		r.due = time.Now().Add(renewalsApart)
	}
}

func (r *router) update(view, names *reply) error {
	list, err := readJSON[NamespaceList](names)
	if err != nil {
		return err
	}
	changed := &ownerMap{numShards: map[string]int{}}
	for _, each := range list.Namespaces {
		changed.numShards[each.Name] = each.NumShards
	}
	if view.status == http.StatusNotModified && r.owners != nil {
		changed.urls = r.owners.urls
	} else {
		shown, err := readJSON[ShardOwners](view)
		if err != nil {
			return err
		}
		changed.urls, r.etag = urlsOf(shown), view.header.Get("etag")
	}
	r.owners = changed
	return nil
}

// urlsOf leaves out nodes that are dead, leaving or skewed, or whose URL is not theirs alone.
func urlsOf(view *ShardOwners) []string {
	count := map[string]int{}
	for _, node := range view.Nodes {
		count[node.APIURL.Or("")]++
	}
	urls := make([]string, view.TotalShards)
	for shard, owner := range view.Owners {
		index, ok := owner.Get()
		if !ok || shard >= len(urls) || index < 0 || index >= len(view.Nodes) {
			continue
		}
		node := view.Nodes[index]
		if address := node.APIURL.Or(""); count[address] == 1 && node.Alive && !node.Leaving && !node.Skewed {
			urls[shard] = strings.TrimRight(address, "/")
		}
	}
	return urls
}

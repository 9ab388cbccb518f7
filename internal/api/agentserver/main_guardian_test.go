package agentserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/agentserver/strangers"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// guardian is an authentication of a repository's own: X-Api-Key names the user, and users see
// only their own things. Some names stand for handlers that fail.
type guardian struct {
	mu sync.Mutex
	// asked has the accesses that the server asked about, seen the headers of all requests.
	asked []string
	seen  []map[string]string
	// values are the newest values, by their accesses.
	values map[string]json.RawMessage
	// open has the accesses that every user is allowed, without a filter.
	open []string
	// ruling is the answer for all accesses; "" for the usual answer.
	ruling string
	// shared is the resource whose things all users share, "" if there is none.
	shared string
	// awake lets the user "hangs" go on; nil lets it hang until the server gives up.
	awake chan struct{}
	// before is called before the user "waits" is let in; nil for nothing.
	before func()
}

// answersOf has the answers of handlers that fail, by the name of the user that sends the
// request.
var answersOf = map[string]string{
	"nothing": ``, "text": `yes`, "list": `[]`, "null": `null`, "empty": `{}`, "allowed only": `{"allowed": true}`, "no identity": `{"allowed": true, "user": {}}`,
	"allowed by text": `{"allowed": "true", "user": {"identity": "ada"}}`, "no user": `{"allowed": true, "user": null}`, "a text for a user": `{"allowed": true, "user": "ada"}`,
	"null for an identity": `{"allowed": true, "user": {"identity": null}}`, "a number for an identity": `{"allowed": true, "user": {"identity": 7}}`,
	"a large user": `{"allowed": true, "user": {"identity": "ada", "more": "` + strings.Repeat("x", 20<<10) + `"}}`,
}

func (g *guardian) rule(ctx context.Context, asked graph.Invocation) (string, error) {
	if asked.Operation == graph.OperationAuthenticate && asked.Request.Headers["x-api-key"] == "hangs" {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-g.awake:
			return "", errors.New("no answer")
		}
	}
	if asked.Operation == graph.OperationAuthenticate && asked.Request.Headers["x-api-key"] == "waits" {
		g.wait()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if asked.Operation == graph.OperationAuthorize {
		access := asked.Access.Resource + ":" + asked.Access.Action
		g.asked = append(g.asked, access)
		if g.values == nil {
			g.values = map[string]json.RawMessage{}
		}
		g.values[access] = asked.Access.Value
		if g.ruling != "" {
			return g.ruling, nil
		}
		if asked.Access.Resource == g.shared || slices.Contains(g.open, access) {
			return string(marshal(object{"allowed": true, "value": asked.Access.Value})), nil
		}
		return usual(*asked.Access)
	}
	g.seen = append(g.seen, asked.Request.Headers)
	name := asked.Request.Headers["x-api-key"]
	if answer, ok := answersOf[name]; ok {
		return answer, nil
	}
	if strings.HasPrefix(name, "{") { // the request itself says how it is answered
		return name, nil
	}
	switch name {
	case "ada", "bob", "waits":
		return string(marshal(object{"allowed": true, "user": object{"identity": name, "permissions": []string{}}})), nil
	case "visitor":
		return `{"allowed": true, "user": {"identity": ""}}`, nil
	case "throws":
		return "", errors.New("a mistake, with a secret")
	case "late":
		return `{"allowed": false, "status": 403, "detail": "Your token is old."}`, nil
	}
	return `{"allowed": false, "status": 401, "detail": "Who are you?"}`, nil
}

func (g *guardian) wait() {
	g.mu.Lock()
	before := g.before
	g.mu.Unlock()
	if before != nil {
		before()
	}
}

// delay makes the user "waits" wait for a function.
func (g *guardian) delay(before func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.before = before
}

// usual puts the user's name into things that the user makes, and lets the user see the things
// with this name.
func usual(access graph.Access) (string, error) {
	var user struct{ Identity string }
	var value object
	if err := errors.Join(json.Unmarshal(access.User, &user), json.Unmarshal(access.Value, &value)); err != nil {
		return "", err
	}
	if access.Resource == "store" {
		before, _ := value["namespace"].([]any)
		value["namespace"] = append([]any{user.Identity}, before...)
		return string(marshal(object{"allowed": true, "value": value})), nil
	}
	metadata, _ := value["metadata"].(object)
	if metadata == nil {
		metadata = object{}
	}
	metadata["owner"] = user.Identity
	value["metadata"] = metadata
	return string(marshal(object{"allowed": true, "value": value, "filter": object{"owner": user.Identity}})), nil
}

func (g *guardian) answer(ruling string) (asked []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	asked, g.asked, g.ruling = g.asked, nil, ruling
	return asked
}

// lastValue returns the newest value of an access.
func (g *guardian) lastValue(access string) json.RawMessage {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.values[access]
}

// last returns the headers of the last request that the guardian was asked about.
func (g *guardian) last() map[string]string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[len(g.seen)-1]
}

// setUpGuarded deploys an agent with an authentication of its own. The fixture's calls are
// calls of ada; platformKey is a valid key of the workspace.
func setUpGuarded(t *testing.T) (f *fixture, g *guardian, platformKey string) {
	t.Helper()
	f, g, platformKey, _ = setUpGuardedAgent(t)
	return f, g, platformKey
}

// setUpGuardedAgent also returns the token of the agent.
func setUpGuardedAgent(t *testing.T) (f *fixture, g *guardian, platformKey, token string) {
	t.Helper()
	many := web.Rate{PerSecond: 1e6, Burst: 1e6}
	return setUpGuardedWithin(t, strangers.Limits{PerAddress: many, PerDeployment: many, AtOnceOfAddress: 1000, AtOnce: 1000}, quota.Limits{})
}

// setUpGuardedWithin also bounds the requests of strangers, and has other quotas.
func setUpGuardedWithin(t *testing.T, bounds strangers.Limits, limits quota.Limits, change ...func(*agentserver.Config)) (f *fixture, g *guardian, platformKey, token string) {
	t.Helper()
	g = &guardian{}
	agent := graphtest.NewAgent(nil, graphtest.Token)
	agent.Rule = g.rule
	server := httptest.NewServer(agent)
	t.Cleanup(server.Close)
	f = setUpLimited(t, compute.Endpoint{URL: server.URL, Token: graphtest.Token}, 0, limits, append(change, func(c *agentserver.Config) { c.Strangers = bounds })...)
	f.auth = "./auth.py:auth"
	revision := f.deploy(t, "agent", "weather")
	platformKey, f.key = f.key, "ada"
	return f, g, platformKey, secret.InvokeToken(f.hasher, revision)
}

// as sends a request of a user.
func (f *fixture) as(t *testing.T, user, method, path string, body any) response {
	t.Helper()
	return f.send(t, method, f.path(path), body, map[string]string{auth.HeaderKey: user})
}

// ofPlatform are the operations for which the repository is not asked about the user: the
// server's description, and its figures.
var ofPlatform = []string{"GET /info", "GET /metrics"}

// TestAttackASlowAuthenticationTakesThePlacesOfItsWorkspace checks that only as many requests wait
// for a slow agent as the workspace has places, and that answered requests give their places back.
func TestAttackASlowAuthenticationTakesThePlacesOfItsWorkspace(t *testing.T) {
	t.Parallel()
	const places, requests = 2, 5
	limits := quota.Limits{}.With(quota.Streams, places)
	f, g, _, _ := setUpGuardedWithin(t, strangers.Limits{}, limits, func(c *agentserver.Config) { c.Patience = time.Millisecond })
	release := make(chan struct{})
	g.delay(func() { <-release })
	answers := make(chan response, requests)
	for range requests {
		go func() { answers <- f.as(t, "waits", "POST", "/threads/search", object{}) }()
	}
	for range requests - places {
		wantDetail(t, <-answers, http.StatusTooManyRequests, limits.Refuse(quota.Streams).Error())
	}
	close(release)
	for range places {
		wantStatus(t, <-answers, http.StatusOK)
	}
	wantStatus(t, f.as(t, "ada", "POST", "/runs/wait", hi()), http.StatusOK) // this needs a place
}

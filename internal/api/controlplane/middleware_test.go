package controlplane_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// Rules about the behaviour that all operations have in common.
const (
	repeated    = "`Idempotency-Key`: the same request gets the first one's answer and does nothing more, another one a 422, one that comes meanwhile a 409 with `Retry-After`."
	conditional = "A deployment has a strong ETag, of the same state for every role: 304 for an `If-None-Match` that has it, 412 and no change for an `If-Match` without it."
	oneWins     = "Of many changes of one version of a deployment one wins, the others are a 412."
	limited     = "Each key has a rate, of reads and of writes: `RateLimit` says what is left, beyond it is a 429 with `Retry-After`."
	docsPage    = "GET /docs is a page about every operation, without credentials."
)

// setUpManners is a control plane that keeps answers.
func setUpManners(t *testing.T) *fixture {
	t.Helper()
	return setUpWith(t, func(store *deployment.Config, config *controlplane.Config) {
		config.Answers = idempotency.NewStore(store.Table, store.Sealer, clock.System)
	})
}

// with returns the headers of a caller and further headers.
func (c tenant) with(further ...string) map[string]string {
	headers := maps.Clone(c.headers())
	for i := 0; i < len(further); i += 2 {
		headers[further[i]] = further[i+1]
	}
	return headers
}

const idempotencyKey, replayed = "Idempotency-Key", "Idempotency-Replayed"

func TestACreateThatIsRepeated(t *testing.T) {
	t.Parallel()
	rule(t, repeated)
	f := setUpManners(t)
	body := fromGit("weather")
	body["secrets"] = []object{{"name": "TOKEN", "value": "hunter2"}}
	first := f.send(t, "POST", "/v2/deployments", body, f.own.with(idempotencyKey, "k"))
	again := f.send(t, "POST", "/v2/deployments", body, f.own.with(idempotencyKey, "k"))
	wantStatus(t, first, http.StatusCreated)
	wantStatus(t, again, http.StatusCreated)
	if string(first.text) != string(again.text) || first.Header.Get(replayed) != "" || again.Header.Get(replayed) != "true" {
		t.Errorf("got %s, then %s (replayed: %q)", first.text, again.text, again.Header.Get(replayed))
	}
	if first.Header.Get("ETag") == "" || first.Header.Get("ETag") != again.Header.Get("ETag") {
		t.Errorf("ETag: got %q, then %q", first.Header.Get("ETag"), again.Header.Get("ETag"))
	}
	if starts := f.engine.starts.Load(); starts != 1 {
		t.Errorf("%d rollouts were started", starts)
	}
	// Another role gets other answers, so its request is another request; another workspace has
	// keys of its own.
	wantStatus(t, f.send(t, "POST", "/v2/deployments", body, f.issue(t, workspace.Editor).with(idempotencyKey, "k")), http.StatusUnprocessableEntity)
	wantStatus(t, f.send(t, "POST", "/v2/deployments", body, f.other.with(idempotencyKey, "k")), http.StatusCreated)
	// A caller without the permission gets no kept answer either.
	wantStatus(t, f.send(t, "POST", "/v2/deployments", body, f.issue(t, workspace.Viewer).with(idempotencyKey, "k")), http.StatusForbidden)
	wantStatus(t, f.send(t, "POST", "/v2/deployments", fromGit("other"), f.own.with(idempotencyKey, "k")), http.StatusUnprocessableEntity)
	wantStatus(t, f.send(t, "POST", "/v2/deployments", body, f.own.with(idempotencyKey, "k2")), http.StatusConflict)
}

// TestACreateIsAnsweredAgainAfterADeath has the server die between the creation and the answer.
func TestACreateIsAnsweredAgainAfterADeath(t *testing.T) {
	t.Parallel()
	var answers *fixtures.Mortal
	f := setUpWith(t, func(store *deployment.Config, config *controlplane.Config) {
		answers = &fixtures.Mortal{Table: store.Table}
		config.Answers = idempotency.NewStore(answers, store.Sealer, clock.System)
	})
	body := fromGit("weather")
	answers.Dead.Store(true)
	first := f.send(t, "POST", "/v2/deployments", body, f.own.with(idempotencyKey, "k"))
	wantStatus(t, first, http.StatusCreated)
	answers.Dead.Store(false)
	again := f.send(t, "POST", "/v2/deployments", body, f.own.with(idempotencyKey, "k"))
	wantStatus(t, again, http.StatusCreated)
	for _, name := range []string{"ETag", "Content-Type", "Cache-Control"} {
		if first.Header.Get(name) != again.Header.Get(name) {
			t.Errorf("%s: got %q, then %q", name, first.Header.Get(name), again.Header.Get(name))
		}
	}
	if string(first.text) != string(again.text) || again.Header.Get(replayed) != "true" {
		t.Errorf("got %s, then %s (replayed: %q)", first.text, again.text, again.Header.Get(replayed))
	}
}

func TestManyEqualPatchesMakeOneRevision(t *testing.T) {
	t.Parallel()
	rule(t, repeated)
	f := setUpManners(t)
	path, _ := f.create(t, fromGit("weather"))
	var wg sync.WaitGroup
	var done, busy atomic.Int64
	for range 50 {
		wg.Go(func() {
			r := f.send(t, "PATCH", path, object{"source_revision_config": object{"repo_ref": "next"}}, f.own.with(idempotencyKey, "k"))
			switch {
			case r.StatusCode == http.StatusOK:
				done.Add(1)
			case r.StatusCode == http.StatusConflict && r.Header.Get("Retry-After") != "":
				busy.Add(1)
			default:
				t.Errorf("got %d %s", r.StatusCode, r.text)
			}
		})
	}
	wg.Wait()
	if done.Load() == 0 || done.Load()+busy.Load() != 50 {
		t.Errorf("%d answers, %d were told to wait", done.Load(), busy.Load())
	}
	list := f.call(t, "GET", path+"/revisions", nil)
	if revisions, _ := list.member("resources").([]any); len(revisions) != 2 {
		t.Errorf("there are %d revisions, want the first and one more", len(revisions))
	}
}

func TestADeploymentUnderConditions(t *testing.T) {
	t.Parallel()
	rule(t, conditional)
	f := setUpManners(t)
	path, created := f.create(t, fromGit("weather"))
	tag := created.Header.Get("ETag")
	read := f.call(t, "GET", path, nil)
	if tag == "" || read.Header.Get("ETag") != tag {
		t.Errorf("ETag: POST has %q, GET %q", tag, read.Header.Get("ETag"))
	}
	unchanged := f.send(t, "GET", path, nil, f.own.with("If-None-Match", tag))
	if wantStatus(t, unchanged, http.StatusNotModified); len(unchanged.text) > 0 || unchanged.Header.Get("ETag") != tag {
		t.Errorf("304: %v %s", unchanged.Header, unchanged.text)
	}
	patch := func(command, expected string) response {
		return f.send(t, "PATCH", path, object{"source_config": object{"build_command": command}}, f.own.with("If-Match", expected))
	}
	// The viewer sees another representation of the same state.
	viewed := f.send(t, "GET", path, nil, f.issue(t, workspace.Viewer).headers())
	wantStatus(t, patch("a", viewed.Header.Get("ETag")), http.StatusOK)
	wantStatus(t, patch("b", tag), http.StatusPreconditionFailed)
	wantStatus(t, patch("b", "no tag"), http.StatusUnprocessableEntity)
	wantStatus(t, f.send(t, "GET", path, nil, f.own.with("If-None-Match", tag)), http.StatusOK)
	changed := patch("c", "*")
	if next := f.call(t, "GET", path, nil); changed.Header.Get("ETag") != next.Header.Get("ETag") || next.member("source_config", "build_command") != "c" {
		t.Errorf("PATCH has %s, GET %s: %s", changed.Header.Get("ETag"), next.Header.Get("ETag"), next.text)
	}
	wantStatus(t, f.send(t, "DELETE", path, nil, f.own.with("If-Match", tag)), http.StatusPreconditionFailed)
	wantStatus(t, f.send(t, "DELETE", path, nil, f.own.with("If-Match", changed.Header.Get("ETag"))), http.StatusNoContent)
	wantStatus(t, f.send(t, "PATCH", "/v2/deployments/"+unknownID, object{}, f.own.with("If-Match", tag)), http.StatusNotFound)
}

// TestARevisionUnderConditions makes revisions in other ways than PATCH; each of them replaces
// values that another client may have changed meanwhile.
func TestARevisionUnderConditions(t *testing.T) {
	t.Parallel()
	rule(t, conditional)
	f := setUpManners(t)
	path, created := f.create(t, fromImage("weather"))
	first, tag := created.id("latest_revision_id"), created.Header.Get("ETag")
	f.deploy(t, created.id("id"))
	for _, way := range []string{"", "/" + first + "/redeploy", "/" + first + "/rollback"} {
		try := func(tag string) response {
			return f.send(t, "POST", path+"/revisions"+way, nil, f.own.with("If-Match", tag))
		}
		read := f.call(t, "GET", path, nil).Header.Get("ETag")
		made := try(read)
		if made.StatusCode/100 != 2 {
			t.Errorf("%s of what was read: %s %s", way, made.Status, made.text)
		}
		wantStatus(t, try(read), http.StatusPreconditionFailed)
		wantStatus(t, try(tag), http.StatusPreconditionFailed)
		if way == "" {
			continue // this operation answers with the revision
		}
		if shown := f.call(t, "GET", path, nil).Header.Get("ETag"); made.Header.Get("ETag") != shown {
			t.Errorf("%s has %s, GET %s", way, made.Header.Get("ETag"), shown)
		}
	}
}

func TestOneOfManyPatchesOfAVersionWins(t *testing.T) {
	t.Parallel()
	rule(t, oneWins)
	f := setUpManners(t)
	path, created := f.create(t, fromGit("weather"))
	var wg sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for i := range 30 {
		wg.Go(func() {
			r := f.send(t, "PATCH", path, object{"source_config": object{"build_command": fmt.Sprint(i)}}, f.own.with("If-Match", created.Header.Get("ETag")))
			mu.Lock()
			defer mu.Unlock()
			statuses[r.StatusCode]++
		})
	}
	wg.Wait()
	if diff := cmp.Diff(map[int]int{200: 1, 412: 29}, statuses); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}

func TestEachKeyIsLimited(t *testing.T) {
	t.Parallel()
	rule(t, limited)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f := setUp(t)
	limits := web.Limits{Reads: web.Rate{PerSecond: 1, Burst: 2}, Writes: web.Rate{PerSecond: 1, Burst: 1}}
	f.mux.Limiter = web.NewLimiter(quota.Limits{}, limits, func() time.Time { return at })
	second := f.issue(t, workspace.Admin)
	for _, step := range []struct {
		method string
		caller tenant
		want   int
	}{
		{"GET", f.own, 200}, {"GET", f.own, 200}, {"GET", f.own, 429}, {"POST", f.own, 422}, {"POST", f.own, 429},
		{"GET", second, 200}, {"GET", f.other, 200}, {"GET", tenant{f.own.workspace, "slw_unknown"}, 401},
	} {
		r := f.send(t, step.method, "/v2/deployments", object{}, step.caller.headers())
		if wantStatus(t, r, step.want); (r.Header.Get("RateLimit") == "") != (step.want == 401) || (r.Header.Get("Retry-After") == "") != (step.want != 429) {
			t.Errorf("%s: %d with %v", step.method, r.StatusCode, r.Header)
		}
	}
	// Operations that need no key are not counted.
	for range 5 {
		wantStatus(t, f.send(t, "GET", "/ok", nil, nil), http.StatusOK)
	}
}

func TestDocsArePublic(t *testing.T) {
	t.Parallel()
	rule(t, docsPage)
	f := setUp(t)
	for _, base := range bases {
		r, err := http.Get(f.URL + base + "/docs")
		check.Must(t, err)
		text, err := io.ReadAll(r.Body)
		check.Must(t, errors.Join(err, r.Body.Close()))
		if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != "text/html; charset=utf-8" || r.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: got %d %v", base, r.StatusCode, r.Header)
		}
		if !strings.Contains(string(text), `url: "openapi.json"`) {
			t.Errorf("%s: the page does not load the document beside it", base)
		}
	}
}

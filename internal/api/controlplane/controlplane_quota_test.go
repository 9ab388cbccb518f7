package controlplane_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/sse"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// bounded is a control plane with a limit on the deployments of each workspace.
func bounded(t *testing.T, most int64) *fixture {
	t.Helper()
	return setUpWith(t, func(store *deployment.Config, _ *controlplane.Config) {
		store.Quotas = quota.Limits{}.With(quota.Deployments, most)
	})
}

// used returns the use of a quota that the workspace is shown.
func (f *fixture) used(t *testing.T, by tenant, name quota.Name) (limit, used int64) {
	t.Helper()
	answer := f.send(t, "GET", "/v2/workspaces/current", nil, by.headers())
	wantStatus(t, answer, http.StatusOK)
	all, _ := answer.member("quotas").([]any)
	for _, one := range all {
		entry, _ := one.(object)
		if entry["name"] == string(name) {
			limit, _ = entry["limit"].(json.Number).Int64()
			if n, ok := entry["used"].(json.Number); ok {
				used, _ = n.Int64()
			}
			return limit, used
		}
	}
	t.Fatalf("no quota %s in %s", name, answer.text)
	return 0, 0
}

// TestAttackAKeyThatTakesAllDeployments creates many deployments at once. Exactly as many
// succeed as the quota allows, the refusals name a remedy, and another workspace notices
// nothing.
func TestAttackAKeyThatTakesAllDeployments(t *testing.T) {
	t.Parallel()
	const most, asked = 3, 12
	f := bounded(t, most)
	answers := make([]response, asked)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = f.call(t, "POST", "/v2/deployments", fromImage(fmt.Sprintf("d%d", i))) })
	}
	all.Wait()
	var made []string
	for _, answer := range answers {
		if answer.StatusCode == http.StatusCreated {
			made = append(made, "/v2/deployments/"+answer.id("id"))
			continue
		}
		wantDetail(t, answer, http.StatusForbidden,
			"The quota deployments of this workspace is used up: its limit is 3. Delete a deployment, or have the operator of the server raise it (--quota deployments=N, on AWS the parameter Quotas).")
	}
	limit, used := f.used(t, f.own, quota.Deployments)
	if len(made) != most || used != most || limit != most {
		t.Fatalf("%d were made, shown are %d of %d; want %d", len(made), used, limit, most)
	}
	wantStatus(t, f.send(t, "POST", "/v2/deployments", fromImage("d0"), f.other.headers()), http.StatusCreated)
	wantStatus(t, f.call(t, "DELETE", made[0], nil), http.StatusNoContent)
	f.create(t, fromImage("again"))
	wantStatus(t, f.call(t, "POST", "/v2/deployments", fromImage("more")), http.StatusForbidden)
}

// TestAttackAKeyThatAsksForReplicas creates deployments with many replicas, and changes them. The
// sum of their max_scale stays within the quota, also if they are created at once.
func TestAttackAKeyThatAsksForReplicas(t *testing.T) {
	t.Parallel()
	const most = 5
	f := setUpWith(t, func(store *deployment.Config, _ *controlplane.Config) {
		store.Quotas = quota.Limits{}.With(quota.Replicas, most)
	})
	sized := func(name string, replicas int) object {
		body := fromImage(name)
		body["source_config"] = object{"resource_spec": object{"min_scale": replicas, "max_scale": replicas}}
		return body
	}
	refused := func(answer response) {
		t.Helper()
		wantDetail(t, answer, http.StatusForbidden, "The quota replicas of this workspace is used up: its limit is 5. Delete a deployment, or give a deployment a lower max_scale, "+
			"or have the operator of the server raise it (--quota replicas=N, on AWS the parameter Quotas).")
	}
	shown := func(want int64) {
		t.Helper()
		if limit, used := f.used(t, f.own, quota.Replicas); limit != most || used != want {
			t.Errorf("shown are %d of %d, want %d of %d", used, limit, want, most)
		}
	}
	refused(f.call(t, "POST", "/v2/deployments", sized("first", most+1)))
	answers := make([]response, 6)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = f.call(t, "POST", "/v2/deployments", sized(fmt.Sprintf("d%d", i), 2)) })
	}
	all.Wait()
	var made []string
	for _, answer := range answers {
		if answer.StatusCode == http.StatusCreated {
			made = append(made, "/v2/deployments/"+answer.id("id"))
			continue
		}
		refused(answer)
	}
	if len(made) != 2 {
		t.Fatalf("%d deployments were made, want 2", len(made))
	}
	shown(4)
	wantStatus(t, f.call(t, "PATCH", made[0], object{"source_config": object{"resource_spec": object{"max_scale": 3}}}), http.StatusOK)
	refused(f.call(t, "PATCH", made[1], object{"source_config": object{"resource_spec": object{"max_scale": 3}}}))
	shown(5)
	wantStatus(t, f.call(t, "PATCH", made[1], object{"source_config": object{"resource_spec": object{"max_scale": 1}}}), http.StatusOK)
	shown(4)
	wantStatus(t, f.call(t, "DELETE", made[0]+"?recovery_window_seconds=3600", nil), http.StatusNoContent)
	shown(1)
	wantStatus(t, f.call(t, "PATCH", made[1], object{"source_config": object{"resource_spec": object{"max_scale": 4}}}), http.StatusOK)
	refused(f.call(t, "POST", made[0]+"/undelete", nil))
	wantStatus(t, f.call(t, "DELETE", made[1], nil), http.StatusNoContent)
	wantStatus(t, f.call(t, "POST", made[0]+"/undelete", nil), http.StatusOK)
	shown(3)
	wantStatus(t, f.send(t, "POST", "/v2/deployments", sized("theirs", most), f.other.headers()), http.StatusCreated)
}

// TestAttackKeysThatAskWithoutEnd checks that keys share the rate of their workspace, whatever
// their roles are. Another workspace notices nothing.
func TestAttackKeysThatAskWithoutEnd(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f := setUp(t)
	viewer := f.issue(t, workspace.Viewer)
	f.mux.Limiter = web.NewLimiter(quota.Limits{}.With(quota.Requests, 2), web.Limits{}, func() time.Time { return at })
	for i, step := range []struct {
		method string
		by     tenant
		want   int
	}{
		{"GET", f.own, 200}, {"POST", f.own, 422}, {"GET", viewer, 200}, {"POST", viewer, 403},
		{"GET", f.own, 429}, {"POST", viewer, 429}, {"GET", f.other, 200},
	} {
		answer := f.send(t, step.method, "/v2/deployments", object{}, step.by.headers())
		if step.want != http.StatusTooManyRequests {
			wantStatus(t, answer, step.want)
			continue
		}
		wantDetail(t, answer, step.want, "The quota requests_per_second of this workspace is used up: its limit is 2. Send fewer requests, "+
			"or have the operator of the server raise it (--quota requests_per_second=N, on AWS the parameter Quotas).")
		if answer.Header.Get("Retry-After") != "1" {
			t.Errorf("step %d: got %v", i, answer.Header)
		}
	}
}

// TestAttackAKeyThatFollowsWithoutEnd holds as many connections as the quota allows; then every
// operation that waits is refused.
func TestAttackAKeyThatFollowsWithoutEnd(t *testing.T) {
	t.Parallel()
	f := setUpWith(t, func(store *deployment.Config, _ *controlplane.Config) {
		store.Quotas = quota.Limits{}.With(quota.Streams, 1)
	})
	path, created := f.create(t, fromGit("weather"))
	revision := path + "/revisions/" + created.id("latest_revision_id")
	follow, stop := context.WithCancel(t.Context())
	held, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- f.stream(follow, "/v2/events", "", func(sse.Event) bool {
			close(held)
			<-follow.Done()
			return true
		})
	}()
	<-held
	asStream := func(by tenant) map[string]string { return by.with("Accept", "text/event-stream") }
	for _, way := range []string{"/v2/events", path + "/events", revision + "/logs?type=build", revision + "?wait=20", "/v2/auth/wait/unknown"} {
		answer := f.send(t, "GET", way, nil, asStream(f.own))
		if wantStatus(t, answer, http.StatusTooManyRequests); !strings.Contains(answer.id("detail"), "quota streams_at_once") || answer.Header.Get("Retry-After") == "" {
			t.Errorf("%s: got %s", way, answer.text)
		}
	}
	wantStatus(t, f.send(t, "GET", revision+"?wait=0", nil, f.other.headers()), http.StatusNotFound)
	wantStatus(t, f.call(t, "GET", "/v2/events", nil), http.StatusOK)
	wantStatus(t, f.call(t, "GET", revision, nil), http.StatusOK)
	stop()
	<-ended
	// Wait until the place is given back.
	for f.call(t, "GET", revision+"?wait=0", nil).StatusCode != http.StatusOK {
		if t.Context().Err() != nil {
			t.Fatal("the place of a client that went is not given back")
		}
	}
}

// TestAnUndeleteNeedsAPlace checks an undelete after another deployment has taken the place.
func TestAnUndeleteNeedsAPlace(t *testing.T) {
	t.Parallel()
	f := bounded(t, 1)
	path, _ := f.create(t, fromImage("first"))
	wantStatus(t, f.call(t, "DELETE", path+"?recovery_window_seconds=3600", nil), http.StatusNoContent)
	second, _ := f.create(t, fromImage("second"))
	refused := f.call(t, "POST", path+"/undelete", nil)
	if wantStatus(t, refused, http.StatusForbidden); !strings.Contains(refused.id("detail"), "quota deployments") {
		t.Errorf("got %s", refused.text)
	}
	wantStatus(t, f.call(t, "DELETE", second, nil), http.StatusNoContent)
	wantStatus(t, f.call(t, "POST", path+"/undelete", nil), http.StatusOK)
	if _, used := f.used(t, f.own, quota.Deployments); used != 1 {
		t.Errorf("%d are counted, want 1", used)
	}
}

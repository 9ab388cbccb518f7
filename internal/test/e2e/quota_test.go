//go:build lambda

package e2e_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

// expectOverQuota checks that a stream of another run is refused.
func (th *thread) expectOverQuota(t *testing.T) {
	t.Helper()
	refused := th.server.call(t, http.StatusTooManyRequests, "POST", th.url+"/runs/stream", ask(askSF, fast), nil)
	if text := string(refused.body); retryAfter(t, refused) == 0 || !strings.Contains(text, "quota streams_at_once of") || !strings.Contains(text, "parameter Quotas") {
		t.Errorf("the refusal has the header %v and says %s", refused.header, text)
	}
}

// retryAfter is how long a client should wait that gets a refusal.
func retryAfter(t *testing.T, refused response) time.Duration {
	t.Helper()
	seconds, err := strconv.Atoi(refused.header.Get("Retry-After"))
	if err != nil {
		t.Fatalf("a refusal has the header %v", refused.header)
	}
	return time.Duration(seconds) * time.Second
}

// another makes another workspace with a key.
func (s *server) another(t *testing.T) (id, key string) {
	t.Helper()
	other, err := workspace.NewStore(s.opened(t).Table(), clock.System).Create(t.Context(), "other")
	check.Must(t, err)
	_, key, err = s.keys(t).Issue(t.Context(), apikey.NewKey{Workspace: other.ID, Role: workspace.Admin, Name: "test"})
	check.Must(t, err)
	return other.ID, key
}

// usedOf returns how much of a quota a workspace is shown to use.
func usedOf(t *testing.T, shown response, name string) int64 {
	t.Helper()
	var current struct {
		Quotas []struct {
			Name string
			Used *int64
		}
	}
	check.Must(t, json.Unmarshal(shown.body, &current))
	for _, one := range current.Quotas {
		if one.Name == name && one.Used != nil {
			return *one.Used
		}
	}
	t.Fatalf("the quota %s is not shown with its use: %s", name, shown.body)
	return 0
}

// TestStreamsOfAllFunctionsAreCounted has a workspace with as many streams as its quota allows,
// each in a process of its own. The place of a process that is killed comes back; that of the
// other process does not, although it is older.
func TestStreamsOfAllFunctionsAreCounted(t *testing.T) {
	t.Parallel()
	s := newStack(t, "--quota", "streams_at_once=2")
	agent := s.deploy(t, agentRepository(t), "main")
	agent.thread(t).stream(t, ask(askSF, slow).streaming()).untilShown(t, 1)
	before := s.functions(t, "Runstream")
	second := agent.thread(t).stream(t, ask(askSF, slow).streaming())
	second.untilShown(t, 1)
	served := slices.DeleteFunc(s.functions(t, "Runstream"), func(pid int) bool { return slices.Contains(before, pid) })
	if len(served) != 1 {
		t.Fatalf("the second stream is served by the processes %v", served)
	}

	third := agent.thread(t)
	third.expectOverQuota(t)
	third.expectRuns(t)
	other, key := s.another(t)
	s.open(t, "GET", "/v2/events", nil, "X-Api-Key", key, "X-Tenant-Id", other, "Accept", "text/event-stream")
	if used := usedOf(t, s.call(t, http.StatusOK, "GET", "/v2/workspaces/current", nil, nil), "streams_at_once"); used != 2 {
		t.Errorf("the workspace is shown that it has %d streams, want 2", used)
	}

	check.Must(t, end(served))
	if second.drain(); second.err == nil {
		t.Fatal("the stream of a killed process had a proper end")
	}
	eventually(t, "the place of the killed process is free", func() (bool, any) {
		got, err := s.do(t.Context(), "POST", third.url+"/runs/stream", ask(askSF, fast))
		if err == nil && got.status == http.StatusTooManyRequests {
			<-time.After(retryAfter(t, got)) // as the answer asks its client to do
		}
		return err == nil && got.status == http.StatusOK, got
	})
	for range 4 { // each gives its place back, in whichever process
		third.stream(t, ask(askSF, fast).streaming()).rest(t)
	}
	third.stream(t, ask(askSF, slow).streaming()).untilShown(t, 1)
	agent.thread(t).expectOverQuota(t)
}

// window is the time in which the requests of a workspace are added up.
const window = 10 * time.Second

// useUp sends requests to several functions until each of them has said that the workspace has
// none left in this window, and returns the window of the last such answer, zero if that takes
// longer than six windows. A process that is itself asked too often says that one may come again
// after a second. All go on until the last one is refused: one process alone does not use up the
// workspace's requests.
func (s *server) useUp(t *testing.T) (in time.Time) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 6*window)
	defer stop()
	paths := []string{"/v2/webhooks", "/v2/webhooks", "/v2/listeners", "/v2/auth/providers"}
	var senders sync.WaitGroup
	var mu sync.Mutex
	refused := map[int]time.Time{}
	for i, path := range paths {
		senders.Go(func() {
			for {
				got, err := s.do(ctx, "GET", path, nil)
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					t.Error(err)
					stop()
					return
				}
				if got.status != http.StatusTooManyRequests {
					continue
				}
				if got.header.Get("Retry-After") != "1" {
					mu.Lock()
					refused[i] = time.Now().Truncate(window)
					if len(refused) == len(paths) {
						stop()
					}
					mu.Unlock()
				}
				<-time.After(interval) // a refusal uses nothing up
			}
		})
	}
	senders.Wait()
	if len(refused) < len(paths) {
		return time.Time{}
	}
	for _, at := range refused {
		if at.After(in) {
			in = at
		}
	}
	return in
}

// TestRequestsOfAllFunctionsAreCounted has a workspace use up its requests at several functions. A
// function that it has not asked yet then accepts less than a grain, although one process would
// accept twice as many at once. Another workspace notices nothing.
func TestRequestsOfAllFunctionsAreCounted(t *testing.T) {
	t.Parallel()
	const perSecond, grain = 6, 10 // a busy machine must be able to send more than this
	s := newStack(t, "--quota", "requests_per_second="+strconv.Itoa(perSecond))
	const asked = "/v2/workspaces/current"
	s.call(t, http.StatusOK, "GET", asked, nil, nil)
	before := s.functions(t, "Workspaces")
	other, key := s.another(t)
	var refused response
	eventually(t, "all happens within one window", func() (bool, any) {
		in, accepted := s.useUp(t), 0
		for refused.status = 0; refused.status != http.StatusTooManyRequests; accepted++ {
			if !time.Now().Truncate(window).Equal(in) {
				return false, in
			}
			var err error
			if refused, err = s.do(t.Context(), "GET", asked, nil); err != nil {
				t.Fatal(err)
			}
		}
		accepted--
		if !time.Now().Truncate(window).Equal(in) {
			return false, in
		}
		if accepted >= grain {
			t.Errorf("a function that was not asked before accepts %d requests of a workspace that has none left", accepted)
		}
		return true, nil
	})
	if now := s.functions(t, "Workspaces"); !slices.Equal(now, before) {
		t.Fatalf("the function has the processes %v, and had %v", now, before)
	}
	if text := string(refused.body); !strings.Contains(text, "quota requests_per_second of") || !strings.Contains(text, "parameter Quotas") {
		t.Errorf("the refusal says %s", text)
	}
	s.call(t, http.StatusOK, "GET", asked, nil, nil, "X-Api-Key", key, "X-Tenant-Id", other)
	<-time.After(retryAfter(t, refused)) // as the answer asks its client to do
	eventually(t, "the workspace is shown what it has sent", func() (bool, any) {
		got, err := s.do(t.Context(), "GET", asked, nil)
		return err == nil && got.status == http.StatusOK && usedOf(t, got, "requests_per_second") > 0, got
	})
}

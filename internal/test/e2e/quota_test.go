//go:build lambda

package e2e_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
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
	opened := s.opened(t)
	other, err := workspace.NewStore(opened.Table(), clock.System).Create(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := s.keys(t).Issue(t.Context(), apikey.NewKey{Workspace: other.ID, Role: workspace.Admin, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	s.open(t, "GET", "/v2/events", nil, "X-Api-Key", key, "X-Tenant-Id", other.ID, "Accept", "text/event-stream")

	if err := end(served); err != nil {
		t.Fatal(err)
	}
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

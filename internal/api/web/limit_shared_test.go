package web_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// wantOpen opens a connection, which must wait.
func (s *holds) wantOpen(t *testing.T, workspace, path string) *http.Response {
	t.Helper()
	answer := s.open(t, workspace, path, events)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: got %d", path, answer.StatusCode)
	}
	return answer
}

// wantOver checks that a request is refused because of a quota.
func (s *holds) wantOver(t *testing.T, workspace, path string, name quota.Name) {
	t.Helper()
	answer := s.open(t, workspace, path, events)
	defer answer.Body.Close()
	var refusal struct{ Detail string }
	err := json.NewDecoder(answer.Body).Decode(&refusal)
	if answer.StatusCode != http.StatusTooManyRequests || err != nil || !strings.HasPrefix(refusal.Detail, "The quota "+string(name)+" of this workspace") {
		t.Errorf("%s: got %d %+v (%v)", path, answer.StatusCode, refusal, err)
	}
}

// TestAThreadThatIsFollowedTooOften fills the places of one thread, whose id clients may write in
// capitals. Another thread, a thread of another deployment with the same id, and connections
// without a thread still have places.
func TestAThreadThatIsFollowedTooOften(t *testing.T) {
	t.Parallel()
	s := newLimitedHolds(t, quota.Limits{}.With(quota.ThreadStreams, 1).With(quota.Streams, 5), nil)
	first := s.wantOpen(t, "a", "/d/d/threads/t/stream")
	for _, path := range []string{"/d/d/threads/t/stream", "/d/D/threads/T/stream"} {
		s.wantOver(t, "a", path, quota.ThreadStreams)
	}
	for _, path := range []string{"/d/d/threads/2/stream", "/d/2/threads/t/stream", "/stream", "/stream"} {
		s.wantOpen(t, "a", path)
	}
	s.wantOver(t, "a", "/d/d/threads/3/stream", quota.Streams)
	s.wantOpen(t, "b", "/d/d/threads/t/stream")
	first.Body.Close()
	s.wantPlace(t, "a", "/d/d/threads/t/stream")
	close(s.end)
	s.Close()
	if open := s.limiter.Open(); open != 0 {
		t.Errorf("%d workspaces and threads are counted in the end", open)
	}
}

// TestProcessesShareTheQuotaOfStreams has two servers over one table: the place that a workspace
// has at one server is not free at the other.
func TestProcessesShareTheQuotaOfStreams(t *testing.T) {
	t.Parallel()
	tb, limits := fixtures.DomainTable(t, clock.System), quota.Limits{}.With(quota.Streams, 1)
	serve := func() *holds {
		return newLimitedHolds(t, limits, quota.NewShared(tb, clock.System, limits, slog.New(slog.DiscardHandler)))
	}
	first, second := serve(), serve()
	open := first.wantOpen(t, "a", "/d/1/threads/1/stream")
	second.wantOver(t, "a", "/stream", quota.Streams)
	second.wantOpen(t, "b", "/stream")
	open.Body.Close()
	second.wantPlace(t, "a", "/d/1/threads/1/stream")
	first.wantOver(t, "a", "/stream", quota.Streams)
	for _, s := range []*holds{first, second} {
		close(s.end)
		s.Close()
		if open := s.limiter.Open(); open != 0 {
			t.Errorf("%d workspaces and threads are counted in the end", open)
		}
	}
}

// TestProcessesShareTheQuotaOfRequests has a workspace that uses up its quota at another process:
// the server accepts less than one grain of requests of it.
func TestProcessesShareTheQuotaOfRequests(t *testing.T) {
	t.Parallel()
	const perSecond, grain = 20, 10
	c := fixtures.NewClock()
	tb, limits := fixtures.DomainTable(t, c.Now), quota.Limits{}.With(quota.Requests, perSecond)
	process := func() *quota.Shared { return quota.NewShared(tb, c.Now, limits, slog.New(slog.DiscardHandler)) }
	for other := process(); other.Count(t.Context(), "a") == nil; {
	}
	s := newLimitedHolds(t, limits, process())
	for range grain - 1 {
		s.wantOpen(t, "a", "/short").Body.Close()
		s.wantOpen(t, "b", "/short").Body.Close()
	}
	s.wantOver(t, "a", "/short", quota.Requests)
	s.wantOpen(t, "b", "/short").Body.Close()
}

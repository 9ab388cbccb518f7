package cloudwatch_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/cloudwatch"
)

// service answers FilterLogEvents without a network, so that the time of a test is its own.
type service struct {
	// lines are the lines that each answer has; refusals is how many requests are refused first.
	lines, refusals int
	requests        int
}

func (s *service) Do(*http.Request) (*http.Response, error) {
	s.requests++
	status, body := http.StatusOK, `{"events":[`+strings.TrimSuffix(strings.Repeat(`{"eventId":"1","timestamp":1,"message":"x"},`, s.lines), ",")+`]}`
	if s.refusals > 0 {
		s.refusals--
		status, body = http.StatusBadRequest, `{"__type":"ThrottlingException","message":"Rate exceeded"}`
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.1"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

func (s *service) logs() *cloudwatch.Logs {
	cfg := awsConfig("http://logs.test")
	cfg.HTTPClient = s
	return cloudwatch.New(cloudwatch.Config{AWS: cfg, Agents: "/slipway/agents"})
}

// waits returns after how many seconds each of some wake-ups comes. look is called after each.
func waits(w revisionlog.Watcher, n int, look func()) []int {
	var seconds []int
	for range n {
		began := time.Now()
		<-w.C()
		seconds = append(seconds, int(time.Since(began)/time.Second))
		look()
	}
	return seconds
}

// TestASilentLogIsReadLessAndLess, and a log with new lines as often as before.
func TestASilentLogIsReadLessAndLess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, log := &service{}, revisionlog.Log{Revision: id.New(time.Now()), Kind: revisionlog.Deploy}
		logs := s.logs()
		w := logs.Watch(log)
		defer w.Stop()
		look := func() {
			if _, err := logs.Read(t.Context(), log, revisionlog.Query{Limit: 10}); err != nil {
				t.Error(err)
			}
		}
		got := waits(w, 6, look)
		if diff := cmp.Diff([]int{3, 6, 12, 24, 24, 24}, got); diff != "" {
			t.Errorf("a silent log (-want +got):\n%s", diff)
		}
		s.lines = 1
		look()
		got = waits(w, 3, look)
		s.lines = 0
		got = append(got, waits(w, 3, look)...)
		if diff := cmp.Diff([]int{3, 3, 3, 3, 6, 12}, got); diff != "" {
			t.Errorf("new lines (-want +got):\n%s", diff)
		}
		// An hour of silence takes a request each 24 s.
		s.requests = 0
		for began := time.Now(); time.Since(began) < time.Hour; {
			waits(w, 1, look)
		}
		if s.requests < 148 || s.requests > 152 {
			t.Errorf("an hour of silence took %d requests", s.requests)
		}
	})
}

// TestAFollowerThatIsRefusedComesLater checks this, and that other logs do not notice.
func TestAFollowerThatIsRefusedComesLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, log := &service{refusals: 3}, revisionlog.Log{Revision: id.New(time.Now()), Kind: revisionlog.Deploy}
		logs := s.logs()
		w, other := logs.Watch(log), logs.Watch(revisionlog.Log{Revision: log.Revision, Kind: revisionlog.Build})
		defer w.Stop()
		defer other.Stop()
		look := func() {
			_, err := logs.Read(t.Context(), log, revisionlog.Query{Limit: 10})
			if refused := s.requests <= 3; refused != errors.Is(err, revisionlog.ErrBusy) || !refused && err != nil {
				t.Errorf("request %d: got %v", s.requests, err)
			}
		}
		look()
		for n, seconds := range waits(w, 2, look) {
			if seconds < 24 || seconds >= 48 {
				t.Errorf("the look after refusal %d comes after %d s", n+1, seconds)
			}
		}
		s.lines = 1
		waits(w, 1, look)
		if got := waits(w, 1, look); got[0] != 3 {
			t.Errorf("the look after a line comes after %d s", got[0])
		}
		select {
		case <-other.C():
		default:
			t.Error("the watcher of another log was not woken")
		}
	})
}

// TestAWatcherThatHasStoppedIsForgotten: what is read later wakes it no more.
func TestAWatcherThatHasStoppedIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, log := &service{lines: 1}, revisionlog.Log{Revision: id.New(time.Now()), Kind: revisionlog.Deploy}
		logs := s.logs()
		w := logs.Watch(log)
		w.Stop()
		if _, err := logs.Read(t.Context(), log, revisionlog.Query{Limit: 10}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		select {
		case <-w.C():
			t.Error("it is woken")
		default:
		}
	})
}

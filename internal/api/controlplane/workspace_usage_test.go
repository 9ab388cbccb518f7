package controlplane_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/sse"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// withoutFigure are the quotas that the workspace is shown without a figure of their use.
func (f *fixture) withoutFigure(t *testing.T) map[string]bool {
	t.Helper()
	answer := f.call(t, "GET", "/v2/workspaces/current", nil)
	wantStatus(t, answer, http.StatusOK)
	none := map[string]bool{}
	all, _ := answer.member("quotas").([]any)
	for _, one := range all {
		if entry, _ := one.(object); entry["used"] == nil {
			none[entry["name"].(string)] = true
		}
	}
	return none
}

// TestWhatAWorkspaceUsesNow shows the streams and the requests of a workspace: on one machine,
// where one process counts them, and in a stack, where the process counts them in the table.
func TestWhatAWorkspaceUsesNow(t *testing.T) {
	t.Parallel()
	const window, requests = 10 * time.Second, 40
	for name, isStack := range map[string]bool{"one machine": false, "a stack": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			passing := fixtures.NewClockAt(clock.System().Truncate(window), 0)
			now := passing.Now
			limiter := web.NewLimiter(quota.Limits{}, web.Limits{}, now)
			usage := f.config.Quotas
			if usage.Live = limiter; isStack {
				shared := quota.NewShared(f.table, now, quota.Limits{}, slog.New(slog.DiscardHandler))
				limiter.Shared = shared
				usage.Live = shared
			}
			f.mux.Limiter = limiter
			want := func(by tenant, of quota.Name, used int64) {
				t.Helper()
				if _, got := f.used(t, by, of); got != used {
					t.Errorf("%s: %d are shown, want %d", of, got, used)
				}
			}
			for range requests {
				wantStatus(t, f.call(t, "GET", "/v2/webhooks", nil), http.StatusOK)
			}
			want(f.own, quota.Requests, 0)
			passing.Pass(window)
			want(f.own, quota.Requests, requests*int64(time.Second)/int64(window))
			want(f.other, quota.Requests, 0)
			passing.Pass(2 * window)
			want(f.own, quota.Requests, 0)

			f.create(t, fromGit("weather")) // the stream tells of it
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
			want(f.own, quota.Streams, 1)
			want(f.other, quota.Streams, 0)
			stop()
			<-ended
			for used := int64(1); used != 0; {
				_, used = f.used(t, f.own, quota.Streams)
			}
			for name := range f.withoutFigure(t) {
				switch quota.Name(name) {
				case quota.DeploymentCrons, quota.ThreadStreams, quota.FileBytes:
					// The interface says why.
				default:
					t.Errorf("the quota %s has no figure", name)
				}
			}
		})
	}
}

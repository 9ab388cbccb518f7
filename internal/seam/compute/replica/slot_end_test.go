package replica_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
	"github.com/slipway-run/slipway/internal/test/check"
)

// lingering is a host whose replicas end when their server is closed, and whose removal then takes
// until the test ends it.
type lingering struct {
	counting

	started chan *lingerer
	removal context.Context
}

func (l *lingering) Prepare(_ context.Context, spec compute.Release) (replica.Prepared, *compute.Status) {
	return lingeringPrepared{counted{&l.counting, spec}, l}, nil
}

type lingeringPrepared struct {
	counted

	of *lingering
}

func (p lingeringPrepared) Start(context.Context) (replica.Replica, *compute.Status) {
	l := &lingerer{served{httptest.NewServer(nothing), p.counting, make(chan struct{})}, p.of.removal}
	p.of.started <- l
	return l, nil
}

type lingerer struct {
	served

	removal context.Context
}

func (l *lingerer) End(context.Context) { <-l.removal.Done() }

// TestCallersLearnTheReasonBeforeTheRemoval lets a replica end whose removal takes long, as that of
// a container can. New callers do not take the release for an agent that slept.
func TestCallersLearnTheReasonBeforeTheRemoval(t *testing.T) {
	t.Parallel()
	removal, remove := context.WithCancel(context.Background())
	host := &lingering{started: make(chan *lingerer, 1), removal: removal}
	target := replica.New(host, replica.Limits{}, nil, slog.New(slog.NewTextHandler(t.Output(), nil)), nil, nil)
	defer target.Close(context.Background())
	defer remove()
	ref := compute.Ref{Workspace: "w", Deployment: "d", Revision: id.New(time.Now())}
	check.Must(t, target.Apply(t.Context(), compute.Release{Ref: ref}))
	endpoint, leave, err := target.Acquire(t.Context(), ref)
	check.Must(t, err)
	defer leave()
	ended := <-host.started
	ended.server.Close()
	close(ended.done)
	patience, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if why := endpoint.Witness.WhyEnded(patience); why != "it ended" {
		t.Errorf("while its replica is removed, a caller learns %q", why)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if serves, err := target.Serves(impatient, ref); err != nil || serves {
		t.Errorf("while its replica is removed, the release serves: %v, %v", serves, err)
	}
	_, _, err = target.Acquire(impatient, ref)
	unavailable, ok := errors.AsType[*compute.UnavailableError](err)
	if !ok || unavailable.Status.Reason != "" || !strings.HasPrefix(unavailable.Status.Message, "it ended") {
		t.Errorf("while its replica is removed, a new caller gets %v", err)
	}
}

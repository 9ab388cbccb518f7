package replica

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// relapseEnds is how often an agent must end, after it was healthy, so that it cannot be
// relied on.
const relapseEnds = 3

// probesPerLimit is the number of probes of a healthy agent within LiveLimit.
const probesPerLimit = 6

// AwaitRelapse waits until the release ends time and again, or did not answer its health check for
// LiveLimit.
func (t *Target) AwaitRelapse(ctx context.Context, ref compute.Ref) (string, error) {
	r := t.find(ref)
	if r == nil {
		return "", fmt.Errorf("mind release %s: %s", ref.Revision, absent.Message)
	}
	for {
		r.mu.Lock()
		relapse, changed := r.relapse, r.changed
		r.mu.Unlock()
		if relapse != "" {
			return relapse, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", nil
		}
	}
}

// noteEnd counts an end of the slot's replica that the release did not ask for, and raises the
// alarm. Only a slot whose replica was healthy once counts, or was started to wake the release:
// that one more replica cannot be started says nothing against the healthy replicas.
func (s *slot) noteEnd(failure *compute.Status) {
	r := s.release
	r.mu.Lock()
	defer r.mu.Unlock()
	if (s.life == nil && !s.wakes) || *failure == stopping {
		return
	}
	r.awoke(failure)
	r.target.raise(r.spec.Ref, *failure)
	if r.relapse != "" {
		return
	}
	r.ends++
	switch {
	case failure.Reason == compute.ReasonNotReady:
		r.relapse = failure.Message
	case r.ends >= relapseEnds:
		r.relapse = fmt.Sprintf("It ended %d times after it had been healthy. The last time %s", r.ends, failure.Message)
	}
	r.announce()
}

// mind probes a healthy replica while it has no callers. If the replica has not answered for
// LiveLimit, deaf receives the last error; the replica takes no callers by then. stop ends the
// probing.
func (s *slot) mind(running Replica) (deaf <-chan error, stop func()) {
	ctx, cancel := context.WithCancel(s.ctx)
	met, ended := make(chan error, 1), make(chan struct{})
	t := s.release.target
	go func() {
		defer close(ended)
		err := guard.Run(t.log, "probe an agent", func() error { return s.probe(ctx, running) })
		if err != nil {
			met <- err
		}
	}()
	return met, func() {
		cancel()
		<-ended
	}
}

// probe probes a replica until ctx ends. If the replica has not answered for LiveLimit, probe
// returns the last error, and the replica takes no more callers.
func (s *slot) probe(ctx context.Context, running Replica) error {
	t := s.release.target
	limit := t.limits.LiveLimit
	probes := time.NewTicker(limit / probesPerLimit)
	defer probes.Stop()
	for heard := time.Now(); ; {
		select {
		case <-probes.C:
		case <-ctx.Done():
			return nil
		}
		answer := t.ping(ctx, running.URL())
		late := time.Since(heard) >= limit
		switch {
		case ctx.Err() != nil:
			return nil
		case answer == nil, s.isCalled():
			heard = time.Now()
		case late && s.closeIfIdle():
			return answer
		}
	}
}

// isCalled reports whether the replica has callers.
func (s *slot) isCalled() bool {
	s.release.mu.Lock()
	defer s.release.mu.Unlock()
	return s.callers > 0
}

// closeIfIdle lets no more callers in if the replica has none, and reports whether it has none.
func (s *slot) closeIfIdle() bool {
	r := s.release
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.callers > 0 {
		return false
	}
	s.url = ""
	r.set(compute.Status{State: compute.Progressing, Message: "It does not answer GET /ping any more and is being restarted."})
	return true
}

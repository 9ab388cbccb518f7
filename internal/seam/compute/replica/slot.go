package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// slot is the place of one replica, which may be started many times.
type slot struct {
	release *release
	// ctx ends when the replica must stop.
	ctx  context.Context
	stop context.CancelFunc

	// The release's mu guards the following fields.

	// url is where the replica answers while it is healthy, "" otherwise. life is the life of
	// the replica.
	url  string
	life *life
	// starting says that the replica has been neither healthy nor found unable to start.
	starting bool
	callers  int
	// wakes says that the replica was started to wake the release.
	wakes bool
}

// life is the time in which one replica was healthy. The reason why it ended may be read once
// over is closed.
type life struct {
	over chan struct{}
	why  string
}

// WhyEnded waits for the end of a life, within ctx, and returns its reason.
func (l *life) WhyEnded(ctx context.Context) string {
	select {
	case <-l.over:
		return l.why
	case <-ctx.Done():
		return ""
	}
}

// start starts a replica and returns it once it is healthy, or says why it is not healthy.
// Nothing is left of a replica that failed.
func (s *slot) start() (Replica, *compute.Status) {
	running, failure := s.startOnce()
	if failure != nil && failure.Reason == compute.ReasonPortTaken {
		// Another program took the port between its choice and its use. A second start chooses
		// another port.
		running, failure = s.startOnce()
	}
	return running, failure
}

func (s *slot) startOnce() (Replica, *compute.Status) {
	t := s.release.target
	limit := cmp.Or(s.release.spec.ReadyLimit, t.limits.ReadyLimit)
	ready, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	running, failure := s.launch(ready)
	if failure != nil {
		if s.ctx.Err() != nil {
			failure = &stopping
		}
		return nil, failure
	}
	lastAnswer := t.awaitPing(ready, running)
	if lastAnswer == nil {
		return running, nil
	}
	select {
	case <-running.Done():
		running.End(t.kill)
		return nil, running.Ended(true)
	default:
	}
	running.End(t.kill)
	if s.ctx.Err() != nil {
		return nil, &stopping
	}
	if foreign(lastAnswer) {
		return nil, running.Failure(compute.ReasonNoContract, fmt.Sprintf("the agent does not speak the container contract: to GET %s/ping %v", running.URL(), lastAnswer))
	}
	return nil, running.Failure(compute.ReasonNotReady, fmt.Sprintf("the agent did not answer GET %s/ping with 200 within %s (%v)",
		running.URL(), limit, lastAnswer))
}

// launch starts a replica as a trial, unless two servers have crashed while they started a
// replica of the release.
func (s *slot) launch(ctx context.Context) (running Replica, failure *compute.Status) {
	t, tried := s.release.target, false
	start := func() error {
		tried = true
		running, failure = s.release.host.Start(ctx)
		return nil
	}
	var err error
	if t.try != nil {
		err = t.try(ctx, "start/"+s.release.revision, start)
	}
	switch {
	case tried:
	case errors.Is(err, workflow.ErrServerDied):
		return nil, Failed(compute.ReasonInternal, "The server crashed twice while it started this release, which is not started again. Deploy another revision.")
	case ctx.Err() != nil:
		return nil, Failed(compute.ReasonInternal, "The server did not start the agent in time: it makes the starts during which it may have crashed one after the other. Deploy the revision again.")
	default:
		if err != nil {
			t.log.Warn("an agent is started without a trial: if the server ends, the start is not suspected", "revision", s.release.revision, "error", err)
		}
		_ = start() // its error is always nil
	}
	return running, failure
}

// supervise keeps the slot's replica running until the replica must stop. A replica that is
// given is healthy already. If supervise panics, it ends the replica first.
func (s *slot) supervise(running Replica) {
	defer func() {
		if running != nil {
			running.End(s.release.target.kill)
		}
	}()
	limits := s.release.target.limits
	pause := limits.RestartMin
	if running == nil {
		var failure *compute.Status
		if running, failure = s.start(); failure != nil {
			s.noteEnd(failure)
			running, pause = s.restart(failure, pause)
		}
	}
	for running != nil {
		healthySince := time.Now()
		begun := &life{over: make(chan struct{})}
		s.live(begun, running.URL())
		failure := s.follow(begun, running)
		s.noteEnd(failure)
		if time.Since(healthySince) > limits.RestartMax {
			pause = limits.RestartMin
		}
		running, pause = s.restart(failure, pause)
	}
}

// live publishes where the replica answers.
func (s *slot) live(begun *life, url string) {
	r := s.release
	r.mu.Lock()
	defer r.mu.Unlock()
	s.url, s.life, s.starting = url, begun, false
	r.idleSince = time.Now()
	r.awoke(nil)
	r.set(compute.Status{State: compute.Healthy})
}

// conclude tells the callers of a replica why it has ended. It publishes the end first, so that
// they cannot get the same replica again.
func (s *slot) conclude(begun *life, failure *compute.Status) *compute.Status {
	s.publish(s.afterEnd(failure))
	begun.why = sentence(failure.Message)
	close(begun.over)
	return failure
}

// publish publishes that the replica answers nowhere, and the status of the release if it has
// no other healthy replica. The end of a replica that the release has let go is no news.
func (s *slot) publish(status compute.Status) {
	r := s.release
	r.mu.Lock()
	defer r.mu.Unlock()
	s.url, s.starting = "", false
	if slices.Contains(r.slots, s) {
		r.set(status)
	}
}

// follow concludes the life of a healthy replica, which has ended by itself, because it did not
// answer any more, or because it must stop.
func (s *slot) follow(begun *life, running Replica) *compute.Status {
	t, revision := s.release.target, s.release.revision
	deaf, stop := s.mind(running)
	defer stop()
	select {
	case <-running.Done():
		failure := s.conclude(begun, running.Ended(false)) // callers do not wait for the removal
		t.log.Warn("agent ended", "revision", revision, "reason", failure.Reason)
		running.End(t.kill)
		return failure
	case answer := <-deaf:
		t.log.Warn("agent does not answer", "revision", revision, "error", answer)
		running.End(t.kill)
		return s.conclude(begun, running.Failure(compute.ReasonNotReady, fmt.Sprintf("the agent did not answer GET /ping with 200 for %s (%v)", t.limits.LiveLimit, answer)))
	case <-s.ctx.Done():
		s.publish(s.whenStopped())
		running.End(t.kill)
		return s.conclude(begun, &stopping)
	}
}

// afterEnd is the release's status after the slot's replica has ended, or could not be started.
func (s *slot) afterEnd(failure *compute.Status) compute.Status {
	if s.ctx.Err() != nil {
		return s.whenStopped()
	}
	return compute.Status{State: compute.Progressing, Message: failure.Message + "\nIt is being restarted."}
}

// whenStopped is the release's status when the replica must stop. A stop of one replica does
// not end the release.
func (s *slot) whenStopped() compute.Status {
	if s.release.ctx.Err() != nil {
		return stopping
	}
	return compute.Status{State: compute.Progressing, Message: "a replica is being stopped"}
}

// restart starts the replica again, after a pause that doubles with each failure, until it is
// healthy. It returns no replica if the replica must stop.
func (s *slot) restart(failure *compute.Status, pause time.Duration) (Replica, time.Duration) {
	for s.ctx.Err() == nil {
		s.publish(s.afterEnd(failure))
		if !clock.Sleep(s.ctx, pause) {
			break
		}
		pause = min(2*pause, s.release.target.limits.RestartMax)
		var running Replica
		if running, failure = s.start(); failure == nil {
			return running, pause
		}
		s.noteEnd(failure)
	}
	s.publish(s.whenStopped())
	return nil, pause
}

// leave counts a caller out.
func (s *slot) leave() {
	r := s.release
	r.mu.Lock()
	defer r.mu.Unlock()
	s.callers--
	r.callers--
	r.idleSince = time.Now()
	r.announce()
}

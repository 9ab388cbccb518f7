package replica

import (
	"context"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// ProcessLimit bounds the processes and threads of one replica. No agent needs that many, and
// a runaway agent soon has them.
const ProcessLimit = 4096

// Host starts replicas. All methods may be called concurrently.
type Host interface {
	// Prepare makes everything ready that all replicas of a release need, or says why the
	// release cannot run.
	Prepare(ctx context.Context, spec compute.Release) (Prepared, *compute.Status)
	// Lone reports whether there can be no second replica while one replica of the release
	// runs.
	Lone(spec compute.Release) bool
	// Erase removes everything that a release has left behind when its last replica has ended.
	Erase(spec compute.Release) error
}

// Prepared is a release whose replicas can be started. All methods may be called concurrently.
type Prepared interface {
	// Release is the release with the results of its preparation.
	Release() compute.Release
	// Start starts a replica, or says why it cannot be started. Nothing is left of a replica
	// that could not be started.
	Start(ctx context.Context) (Replica, *compute.Status)
}

// Replica is one running process or container of a release, or the equivalent of another host.
type Replica interface {
	// URL is where the replica listens.
	URL() string
	// Done is closed when the replica has ended and all its output was handed over.
	Done() <-chan struct{}
	// Ended says why a replica that is Done has ended. before says that the replica had not
	// been healthy.
	Ended(before bool) *compute.Status
	// Failure is a Failed status with the replica's last output.
	Failure(reason, what string) *compute.Status
	// End stops the replica, within its grace or until kill ends, and clears it away. End is
	// called once, also for a replica that is Done.
	End(kill context.Context)
}

// Failed returns the status of a release that will not become healthy.
func Failed(reason, message string) *compute.Status {
	return &compute.Status{State: compute.Failed, Reason: reason, Message: message}
}

const (
	saidNothing = " It printed nothing."
	saidLast    = " Its last output:\n"
)

// Said appends a program's last output to a sentence about it.
func Said(what, last string) string {
	if last == "" {
		return what + "." + saidNothing
	}
	return what + "." + saidLast + last
}

// sentence removes the output that Said has appended: an agent's callers must not read its
// output.
func sentence(said string) string {
	what, _, _ := strings.Cut(said, saidLast)
	return strings.TrimSuffix(what, saidNothing)
}

package replica

import (
	"context"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// ProcessLimit bounds the processes and threads of one replica, which no agent needs and a runaway
// one soon has.
const ProcessLimit = 4096

// Host starts replicas. All methods may be called concurrently.
type Host interface {
	// Prepare readies what all replicas of a release need; or says why it cannot run.
	Prepare(ctx context.Context, spec compute.Release) (Prepared, *compute.Status)
	// Lone tells that there can be no second replica while one of the release runs.
	Lone(spec compute.Release) bool
	// Erase removes what a release has left behind when its last replica has ended.
	Erase(spec compute.Release) error
}

// Prepared is a release whose replicas can be started. All methods may be called concurrently.
type Prepared interface {
	// Release is the release with what was found out when it was prepared.
	Release() compute.Release
	// Start starts a replica, or says why it cannot be. Of one that could not be started nothing is
	// left.
	Start(ctx context.Context) (Replica, *compute.Status)
}

// Replica is one running process or container of a release, or what a host has of the kind.
type Replica interface {
	// URL is where it listens.
	URL() string
	// Done is closed when it has ended and all that it printed was handed over.
	Done() <-chan struct{}
	// Ended says why one that is Done has ended. before tells that it had not been healthy.
	Ended(before bool) *compute.Status
	// Failure is a Failed status with the replica's last output.
	Failure(reason, what string) *compute.Status
	// End stops it, within its grace or until kill ends, and clears it away. It is called once,
	// also for one that is Done.
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

// sentence takes off again what Said has appended: who calls an agent is not to read what it
// prints.
func sentence(said string) string {
	what, _, _ := strings.Cut(said, saidLast)
	return strings.TrimSuffix(what, saidNothing)
}

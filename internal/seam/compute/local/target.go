// Package local is the compute target of one machine: releases that were built into an image
// run in containers, all others as processes.
package local

import (
	"context"
	"sync"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// Target implements compute.Target with two others.
type Target struct {
	processes, containers compute.MachineTarget

	mu sync.Mutex
	// contained are the revisions that were applied to containers.
	contained map[string]bool
}

var _ compute.MachineTarget = (*Target)(nil)

// New returns a target that runs releases with an image in containers, and all others as processes.
func New(processes, containers compute.MachineTarget) *Target {
	return &Target{processes: processes, containers: containers, contained: map[string]bool{}}
}

// Apply makes the release run as a container or as processes, by its artifact.
func (t *Target) Apply(ctx context.Context, release compute.Release) error {
	return t.choose(release).Apply(ctx, release)
}

// Restart starts the release's agents again.
func (t *Target) Restart(ctx context.Context, release compute.Release, restartID string) error {
	return t.choose(release).Restart(ctx, release, restartID)
}

// AwaitRestart returns how a restart has ended.
func (t *Target) AwaitRestart(ctx context.Context, ref compute.Ref, restartID string) (compute.Status, error) {
	return t.of(ref).AwaitRestart(ctx, ref, restartID)
}

// Await returns the release's status.
func (t *Target) Await(ctx context.Context, ref compute.Ref) (compute.Status, error) {
	return t.of(ref).Await(ctx, ref)
}

// AwaitRelapse returns why a release cannot be relied on.
func (t *Target) AwaitRelapse(ctx context.Context, ref compute.Ref) (string, error) {
	return t.of(ref).AwaitRelapse(ctx, ref)
}

// Serves reports whether the release is healthy. It wakes no release.
func (t *Target) Serves(ctx context.Context, ref compute.Ref) (bool, error) {
	return t.of(ref).Serves(ctx, ref)
}

// Acquire returns where to invoke the release.
func (t *Target) Acquire(ctx context.Context, ref compute.Ref) (compute.Endpoint, func(), error) {
	return t.of(ref).Acquire(ctx, ref)
}

// Remove stops the release.
func (t *Target) Remove(ctx context.Context, ref compute.Ref) error {
	target := t.of(ref)
	t.mu.Lock()
	delete(t.contained, ref.Revision)
	t.mu.Unlock()
	return target.Remove(ctx, ref)
}

// choose returns the target that runs the release, and remembers it.
func (t *Target) choose(release compute.Release) compute.MachineTarget {
	if release.Artifact.Image != "" {
		t.mu.Lock()
		t.contained[release.Revision] = true
		t.mu.Unlock()
	}
	return t.of(release.Ref)
}

func (t *Target) of(ref compute.Ref) compute.MachineTarget {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.contained[ref.Revision] {
		return t.containers
	}
	return t.processes
}

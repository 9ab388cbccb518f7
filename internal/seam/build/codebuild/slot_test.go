//go:build moto

package codebuild_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/codebuild"
	"github.com/slipway-run/slipway/internal/test/check"
)

// isWaiting reports whether a build has no place because its workspace has its share.
func isWaiting(t *testing.T, err error) bool {
	t.Helper()
	full, waits := errors.AsType[*build.NoCapacity](err)
	if !waits {
		check.Must(t, err)
		return false
	}
	if !strings.Contains(full.Error(), "at most 2 of them") {
		t.Errorf("the build waits for another reason: %v", full)
	}
	return true
}

// TestAWorkspaceThatWantsAllBuilds starts many builds of one workspace at once, each several
// times, as a workflow does. They get as many places as the workspace may have, and another
// workspace is not delayed. A place is free when its build was removed or has ended.
func TestAWorkspaceThatWantsAllBuilds(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	b := a.builder(func(c *codebuild.Config) { c.Slots = 2 })
	held, release := slow(t)
	all := []build.Spec{held}
	for range 7 {
		spec := newSpec(held.RepoURL)
		spec.Workspace = held.Workspace
		all = append(all, spec)
	}
	var mu sync.Mutex
	var begun, waiting []build.Spec
	var callers sync.WaitGroup
	for _, spec := range all {
		callers.Go(func() {
			waits := true
			for range 3 {
				waits = isWaiting(t, b.Start(t.Context(), spec))
			}
			mu.Lock()
			defer mu.Unlock()
			if waits {
				waiting = append(waiting, spec)
			} else {
				begun = append(begun, spec)
			}
		})
	}
	callers.Wait()
	if len(begun) != 2 || len(a.builds) != 2 {
		t.Fatalf("%d revisions are built by %d builds, want 2", len(begun), len(a.builds))
	}
	other := newSpec(serveGit(t, buildtest.NewRepo(t, map[string]string{"framework.json": framework("")}), ""))
	wantState(t, b, waiting[0].Revision, build.Absent)
	if got := end(t, b, other); got.State != build.Succeeded {
		t.Errorf("the build of another workspace is %+v", got)
	}

	check.Must(t, b.Remove(t.Context(), begun[0].Revision))
	if isWaiting(t, b.Start(t.Context(), waiting[0])) {
		t.Error("the place of a removed build is not free")
	}
	if !isWaiting(t, b.Start(t.Context(), waiting[1])) {
		t.Error("a place was given to two builds")
	}
	release()
	wantState(t, b, begun[1].Revision, build.Succeeded)
	if isWaiting(t, b.Start(t.Context(), waiting[1])) {
		t.Error("the place of a build that has ended is not free")
	}
	wantState(t, b, waiting[1].Revision, build.Succeeded)
}

// TestABuildInTheQueueSaysThatThereIsNoRoom while it waits, and when CodeBuild lets it wait no
// longer. A build that runs says nothing.
func TestABuildInTheQueueSaysThatThereIsNoRoom(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	stop := func() {}
	b := a.builder(func(c *codebuild.Config) {
		c.After = func(time.Duration) <-chan time.Time { stop(); return nil }
	})
	spec, release := slow(t)
	check.Must(t, b.Start(t.Context(), spec))
	if want := `"queuedTimeoutInMinutesOverride":480`; !strings.Contains(a.requests[0], want) {
		t.Errorf("the request has no %s", want)
	}
	report := func(phase, status string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, r := range a.builds {
			r.phase, r.status = phase, status
		}
	}
	want := func(state build.State, reason, words string) {
		t.Helper()
		var once context.Context
		once, stop = context.WithCancel(t.Context())
		got, err := b.Await(once, spec.Revision)
		if err != nil || got.State != state || got.Reason != reason || !strings.Contains(got.Message, words) {
			t.Errorf("got %+v, %v; want %s %s: %s", got, err, state, reason, words)
		}
	}
	const quota = "the quota builds that run at once in CodeBuild of"
	report("QUEUED", "IN_PROGRESS")
	want(build.Running, build.ReasonNoCapacity, quota)
	report("BUILD", "IN_PROGRESS")
	want(build.Running, "", "")
	release()
	for _, r := range a.builds {
		<-r.ended
	}
	report("QUEUED", "TIMED_OUT")
	want(build.Failed, build.ReasonNoCapacity, quota)
}

//go:build moto

package codebuild_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/codebuild"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// wantState checks the state that Await returns.
func wantState(t *testing.T, b *codebuild.Builder, revision string, want build.State) build.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got, err := b.Await(ctx, revision)
	if err != nil || got.State != want {
		t.Fatalf("Await: got %+v, %v; want %s", got, err, want)
	}
	return got
}

func TestABuildIsDoneOnce(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	b := a.builder()
	spec := newSpec(serveGit(t, buildtest.NewRepo(t, map[string]string{"framework.json": framework("")}), ""))
	wantState(t, b, spec.Revision, build.Absent)
	var callers sync.WaitGroup
	for range 10 {
		callers.Go(func() {
			if err := b.Start(t.Context(), spec); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	first := wantState(t, b, spec.Revision, build.Succeeded)
	check.Must(t, b.Start(t.Context(), spec))
	if diff := cmp.Diff(first, wantState(t, b, spec.Revision, build.Succeeded)); diff != "" {
		t.Errorf("the second time (-first +second):\n%s", diff)
	}
	if len(a.builds) != 1 {
		t.Errorf("%d builds ran, want one", len(a.builds))
	}
}

// TestBuildsPrintToTheirRevision checks where CodeBuild is asked to write the output of a
// build: the names of its streams begin with the id of the revision.
func TestBuildsPrintToTheirRevision(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	b := a.builder(func(c *codebuild.Config) { c.LogGroup = "/slipway/builds" })
	spec := newSpec(serveGit(t, buildtest.NewRepo(t, map[string]string{"framework.json": framework("")}), ""))
	check.Must(t, b.Start(t.Context(), spec))
	wantState(t, b, spec.Revision, build.Succeeded)
	want := `"logsConfigOverride":{"cloudWatchLogs":{"groupName":"/slipway/builds","status":"ENABLED","streamName":"` + spec.Revision + `"}}`
	if !strings.Contains(a.requests[0], want) {
		t.Errorf("the request is %s\nwithout %s", a.requests[0], want)
	}
}

func TestAFailedBuildIsTriedAnew(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	b := a.builder()
	repo := buildtest.NewRepo(t, map[string]string{"framework.json": framework("false")})
	spec := newSpec(serveGit(t, repo, ""))
	wantFailure(t, b, spec, build.ReasonBuildCommandFailed)
	repo.Commit(map[string]string{"framework.json": framework("true")})
	if got := end(t, b, spec); got.State != build.Succeeded {
		t.Errorf("got %+v", got)
	}
	if calls := read(t, a.calls); !strings.Contains(calls, "--tag "+repository+":"+spec.Revision+"-2 ") {
		t.Errorf("the second attempt has no tag of its own:\n%s", calls)
	}
	check.Must(t, b.Remove(t.Context(), spec.Revision))
	if len(a.pushed) > 0 {
		t.Errorf("images are left: %v", a.pushed)
	}
}

// slow returns the Spec of a repository whose build lasts until release writes a file.
func slow(t *testing.T) (spec build.Spec, release func()) {
	t.Helper()
	gate := filepath.Join(t.TempDir(), "gate")
	open(t, filepath.Dir(gate))
	repo := buildtest.NewRepo(t, map[string]string{"framework.json": framework("until test -e " + gate + "; do sleep 0.05; done")})
	return newSpec(serveGit(t, repo, "")), func() { check.Must(t, os.WriteFile(gate, nil, 0o644)) }
}

func TestAwaitReturnsWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	b := a.builder()
	spec, release := slow(t)
	check.Must(t, b.Start(t.Context(), spec))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for _, ctx := range []context.Context{over, short} {
		if got, err := b.Await(ctx, spec.Revision); err != nil || got.State != build.Running {
			t.Errorf("got %+v, %v; want running", got, err)
		}
	}
	release()
	wantState(t, b, spec.Revision, build.Succeeded)
}

func TestRemove(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	b := a.builder()
	spec, release := slow(t)
	spec.Credentials = "me:hunter2"
	check.Must(t, b.Remove(t.Context(), spec.Revision))
	check.Must(t, b.Start(t.Context(), spec))
	check.Must(t, b.Remove(t.Context(), spec.Revision))
	for _, r := range a.builds {
		<-r.ended
		if r.status != "STOPPED" {
			t.Errorf("the build is %s", r.status)
		}
	}
	wantState(t, b, spec.Revision, build.Absent)
	if len(a.secrets) > 0 {
		t.Errorf("secrets are left: %v", a.secrets)
	}
	release()
	if got := end(t, b, spec); got.State != build.Succeeded || !a.pushed[spec.Revision] {
		t.Errorf("again: got %+v", got)
	}
	check.Must(t, b.Remove(t.Context(), spec.Revision))
	check.Must(t, b.Remove(t.Context(), spec.Revision))
	wantState(t, b, spec.Revision, build.Absent)
	if len(a.pushed) > 0 {
		t.Errorf("images are left: %v", a.pushed)
	}
}

// TestABuildInTheQueueGetsItsCredentialsAnew starts a build again while it waits, and while it
// runs.
func TestABuildInTheQueueGetsItsCredentialsAnew(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	b := a.builder()
	spec, release := slow(t)
	spec.Credentials = "me:first"
	check.Must(t, b.Start(t.Context(), spec))
	for _, c := range []struct{ phase, credentials, want string }{
		{"QUEUED", "me:second", "me:second"}, {"BUILD", "me:third", "me:second"},
	} {
		a.mu.Lock()
		for _, r := range a.builds {
			r.phase = c.phase
		}
		a.mu.Unlock()
		spec.Credentials = c.credentials
		check.Must(t, b.Start(t.Context(), spec))
		a.mu.Lock()
		for _, held := range a.secrets {
			if held != c.want {
				t.Errorf("in phase %s the secret is %q, want %q", c.phase, held, c.want)
			}
		}
		if len(a.builds) != 1 || len(a.secrets) != 1 {
			t.Errorf("%d builds and %d secrets, want one of each", len(a.builds), len(a.secrets))
		}
		a.mu.Unlock()
	}
	release()
	wantState(t, b, spec.Revision, build.Succeeded)
}

// TestAStartThatWasCutOff loses the answer of StartBuild, and then the write after it.
func TestAStartThatWasCutOff(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	spec, release := slow(t)
	tb := &failing{Table: fixtures.Table(t), writes: 1}
	b := a.builder(func(c *codebuild.Config) { c.Table = tb })
	if err := b.Start(t.Context(), spec); err == nil {
		t.Fatal("Start: got no error")
	}
	wantState(t, b, spec.Revision, build.Absent)
	tb.writes = 100
	check.Must(t, b.Start(t.Context(), spec))
	release()
	wantState(t, b, spec.Revision, build.Succeeded)
	if len(a.builds) != 1 {
		t.Errorf("%d builds ran, want one", len(a.builds))
	}
}

// TestRemoveStopsABuildWhoseStartWasCutOff removes a build whose id nobody has noted, between an
// older and a newer build of other revisions. Then it removes a revision that has no build and is
// newer than all builds, for which the newest builds are looked at and no others.
func TestRemoveStopsABuildWhoseStartWasCutOff(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	tb := &failing{Table: fixtures.Table(t), writes: 100}
	b := a.builder(func(c *codebuild.Config) { c.Table = tb })
	lost, _ := slow(t)
	older, newer, refused := lost, lost, lost
	older.Revision, newer.Revision, refused.Revision = newSpec("").Revision, newSpec("").Revision, id.New(time.Now().Add(time.Hour))
	check.Must(t, b.Start(t.Context(), older))
	tb.writes = 1
	if err := b.Start(t.Context(), lost); err == nil {
		t.Fatal("Start: got no error")
	}
	tb.writes = 100
	check.Must(t, b.Start(t.Context(), newer))
	check.Must(t, b.Remove(t.Context(), lost.Revision))
	a.mu.Lock()
	for _, r := range a.builds {
		if want := map[bool]string{true: "STOPPED", false: "IN_PROGRESS"}[r.tag == lost.Revision]; r.status != want {
			t.Errorf("the build of %s is %s, want %s", r.tag, r.status, want)
		}
	}
	a.called, a.refuse = nil, func(operation string) (int, string, string) {
		if operation == "StartBuild" {
			return http.StatusBadRequest, "AccountLimitExceededException", "Cannot have more than 3 builds in queue for the account"
		}
		return 0, "", ""
	}
	a.mu.Unlock()
	if err := b.Start(t.Context(), refused); err == nil {
		t.Error("Start: got no error")
	}
	check.Must(t, b.Remove(t.Context(), refused.Revision))
	if want := "StartBuild ListBuildsForProject BatchGetBuilds BatchDeleteImage"; a.operations() != want {
		t.Errorf("got %s, want %s", a.operations(), want)
	}
}

// failing is a table that accepts so many transactions and no more.
type failing struct {
	table.Table
	writes int
}

func (f *failing) Transact(ctx context.Context, writes ...table.Write) error {
	if f.writes--; f.writes < 0 {
		return context.DeadlineExceeded
	}
	return f.Table.Transact(ctx, writes...)
}

// TestAStartThatIsOvertakenByRemove removes the build between StartBuild and the update of its
// note.
func TestAStartThatIsOvertakenByRemove(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	b := a.builder()
	spec, _ := slow(t)
	spec.Credentials = "me:hunter2"
	a.refuse = func(operation string) (int, string, string) {
		if operation == "StartBuild" {
			check.Must(t, b.Remove(t.Context(), spec.Revision))
		}
		return 0, "", ""
	}
	if err := b.Start(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "was removed while") {
		t.Fatalf("Start: got %v", err)
	}
	for _, r := range a.builds {
		<-r.ended
	}
	if len(a.secrets) > 0 {
		t.Errorf("secrets are left: %v", a.secrets)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	const full = "Cannot have more than 1 builds in queue for the account"
	for name, c := range map[string]struct {
		operation, code, words string
		// want is the text of the error; "" stands for the service's own words.
		want string
	}{
		"start":  {"StartBuild", "AccessDeniedException", "is not authorized to perform: codebuild:StartBuild", ""},
		"full":   {"StartBuild", "AccountLimitExceededException", full, "the quota builds that run and wait in CodeBuild"},
		"look":   {"BatchGetBuilds", "AccessDeniedException", "is not authorized to perform: codebuild:BatchGetBuilds", ""},
		"secret": {"CreateSecret", "InvalidRequestException", "You can't create this secret because a secret with this name is already scheduled for deletion.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			a.refuse = func(operation string) (int, string, string) {
				if operation == c.operation {
					return http.StatusBadRequest, c.code, c.words
				}
				return 0, "", ""
			}
			b := a.builder()
			spec := newSpec(serveGit(t, buildtest.NewRepo(t, map[string]string{"framework.json": framework("")}), ""))
			spec.Credentials = "me:hunter2"
			err := b.Start(t.Context(), spec)
			if err == nil {
				_, err = b.Await(t.Context(), spec.Revision)
			}
			want := c.want
			if want == "" {
				want = c.words
			}
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestThrottlingPasses refuses each operation once.
func TestThrottlingPasses(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	refused := map[string]bool{}
	a.refuse = func(operation string) (int, string, string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if refused[operation] {
			return 0, "", ""
		}
		refused[operation] = true
		if len(refused)%2 == 0 {
			return http.StatusInternalServerError, "InternalServiceError", ""
		}
		return http.StatusBadRequest, "ThrottlingException", "Rate exceeded"
	}
	b := a.builder()
	spec := newSpec(serveGit(t, buildtest.NewRepo(t, map[string]string{"framework.json": framework("")}), ""))
	spec.Credentials = "me:hunter2"
	if got := end(t, b, spec); got.State != build.Succeeded {
		t.Errorf("got %+v", got)
	}
	check.Must(t, b.Remove(t.Context(), spec.Revision))
}

// TestAFullQueueIsNoFault: a build that CodeBuild has no place for is begun when there is a
// place.
func TestAFullQueueIsNoFault(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	full := true
	a.refuse = func(operation string) (int, string, string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if operation != "StartBuild" || !full {
			return 0, "", ""
		}
		full = false
		return http.StatusBadRequest, "AccountLimitExceededException", "Cannot have more than 6 builds in queue for the account"
	}
	b := a.builder()
	spec := newSpec(serveGit(t, buildtest.NewRepo(t, map[string]string{"framework.json": framework("")}), ""))
	if _, ok := errors.AsType[*build.NoCapacity](b.Start(t.Context(), spec)); !ok {
		t.Error("the quota is not told apart from a fault")
	}
	if got := end(t, b, spec); got.State != build.Succeeded {
		t.Errorf("got %+v", got)
	}
}

// TestEndsThatCodeBuildDecides sets the status of a build.
func TestEndsThatCodeBuildDecides(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	b := a.builder()
	repo := buildtest.NewRepo(t, map[string]string{"framework.json": framework("")})
	url := serveGit(t, repo, "")
	for status, c := range map[string]struct {
		state  build.State
		reason string
		err    string
	}{
		"TIMED_OUT": {build.Failed, build.ReasonBuildTimeout, ""},
		"STOPPED":   {build.Absent, "", ""},
		"FAULT":     {build.Absent, "", ""},
		"FAILED":    {"", "", "ended as FAILED: BUILD: COMMAND_EXECUTION_ERROR Error while executing command"},
		"nothing":   {"", "", "has exported no image"},
	} {
		spec := newSpec(url)
		end(t, b, spec)
		a.mu.Lock()
		for _, r := range a.builds {
			if r.tag == spec.Revision {
				r.status = status
				r.variables = nil
				if status == "nothing" {
					r.status = "SUCCEEDED"
				}
			}
		}
		a.mu.Unlock()
		got, err := b.Await(t.Context(), spec.Revision)
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: got %v, want an error with %q", status, err, c.err)
		case c.err == "" && (err != nil || got.State != c.state || got.Reason != c.reason):
			t.Errorf("%s: got %+v, %v", status, got, err)
		}
		check.Must(t, b.Start(t.Context(), spec))
		wantState(t, b, spec.Revision, build.Succeeded)
	}
}

// TestAnImageFromElsewhereIsRefused has a build export an image that is not in the repository to
// which the project pushes.
func TestAnImageFromElsewhereIsRefused(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	b := a.builder()
	spec := newSpec(serveGit(t, buildtest.NewRepo(t, map[string]string{"framework.json": framework("")}), ""))
	end(t, b, spec)
	for _, image := range []string{"registry.example.com/evil@sha256:2", repository + "/w/d@sha256:2", repository + "2@sha256:2", repository} {
		a.mu.Lock()
		for _, r := range a.builds {
			r.variables["SLIPWAY_IMAGE"] = image
		}
		a.mu.Unlock()
		if got, err := b.Await(t.Context(), spec.Revision); err == nil || !strings.Contains(err.Error(), "is not in "+repository) {
			t.Errorf("%s: got %+v, %v", image, got, err)
		}
	}
}

// TestABrokenScriptIsAFault lets docker fail, which is not the fault of a repository.
func TestABrokenScriptIsAFault(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	check.Must(t, os.WriteFile(filepath.Join(a.bin, "docker"), []byte("#!/bin/sh\nexit 1\n"), 0o755))
	b := a.builder()
	spec := newSpec(serveGit(t, buildtest.NewRepo(t, map[string]string{"framework.json": framework("")}), ""))
	check.Must(t, b.Start(t.Context(), spec))
	if got, err := b.Await(t.Context(), spec.Revision); err == nil || !strings.Contains(err.Error(), "ended as FAILED") {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestWhatIsNotAnIDIsRefused(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	b := a.builder()
	spec := newSpec("https://git.test/a")
	spec.Revision = "../up"
	_, err := b.Await(t.Context(), spec.Revision)
	for _, err := range []error{b.Start(t.Context(), spec), err, b.Remove(t.Context(), spec.Revision)} {
		if err == nil {
			t.Error("got no error")
		}
	}
	if got := a.operations(); got != "" {
		t.Errorf("called %s", got)
	}
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	if _, err := codebuild.New(codebuild.Config{}); err == nil || !strings.Contains(err.Error(), "there is no ") {
		t.Errorf("got %v", err)
	}
}

// Package buildtest is the conformance suite of package build, for builders that run on the machine
// of the tests.
package buildtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/test/check"
)

// Run checks that the builders that open returns keep the promises of package build. A builder
// lives as long as its test.
func Run(t *testing.T, open func(t *testing.T) build.Builder) {
	for name, promise := range map[string]func(fixture){
		"a build makes an artifact":                      builds,
		"a failed build says why":                        fails,
		"a ref that is not there":                        refNotFound,
		"a failed build is tried anew":                   triedAnew,
		"a build is done once":                           doneOnce,
		"await says running when time is over":           timeIsOver,
		"remove ends a running build":                    removeRunning,
		"remove erases a build, which can be done again": removeFinished,
		"what is not an id is refused":                   notAnID,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			promise(fixture{t, open(t)})
		})
	}
}

// NewSpec returns the Spec of a build of the repository's branch main.
func NewSpec(url string) build.Spec {
	now := time.Now()
	return build.Spec{
		Workspace: id.New(now), Deployment: id.New(now), Revision: id.New(now), RepoURL: url, Ref: "main", ConfigPath: "framework.json",
	}
}

// fixture is a builder under test.
type fixture struct {
	*testing.T
	builder build.Builder
}

func (f fixture) context() context.Context {
	ctx, cancel := context.WithTimeout(f.Context(), 30*time.Second)
	f.Cleanup(cancel)
	return ctx
}

// start starts the build of one commit with a build command.
func (f fixture) start(command string) build.Spec {
	f.Helper()
	spec := NewSpec(NewRepo(f.T, map[string]string{"framework.json": Framework(command)}).URL())
	check.Must(f.T, f.builder.Start(f.context(), spec))
	return spec
}

func (f fixture) await(spec build.Spec) build.Result {
	f.Helper()
	result, err := f.builder.Await(f.context(), spec.Revision)
	check.Must(f.T, err)
	return result
}

func (f fixture) want(spec build.Spec, state build.State, reason string, words ...string) build.Result {
	f.Helper()
	result := f.await(spec)
	if result.State != state || result.Reason != reason {
		f.Fatalf("build is %s %s %q; want %s %s", result.State, result.Reason, result.Message, state, reason)
	}
	for _, want := range words {
		if !strings.Contains(result.Message, want) {
			f.Errorf("message %q does not say %q", result.Message, want)
		}
	}
	return result
}

// gate is a FIFO at which a build command waits, with `read go <gate`, until the test opens
// it.
type gate string

func (f fixture) newGate() gate {
	path := filepath.Join(f.TempDir(), "gate")
	check.Must(f.T, syscall.Mkfifo(path, 0o600))
	return gate(path)
}

// open waits for a build at the gate.
func (g gate) open() error { return os.WriteFile(string(g), []byte("go on\n"), 0) }

func builds(f fixture) {
	r := NewRepo(f.T, map[string]string{
		"service/framework.json": `{"graphs": {"b": "./agent.go:b", "a": {"path": "agent.go:a"}}, "build": "echo building; cp agent.go agent",
			"start": "./agent --serve", "env": {"GREETING": "hello"}}`,
		"service/agent.go": "package main",
	})
	spec := NewSpec(r.URL())
	spec.ConfigPath = "service/framework.json"
	f.want(spec, build.Absent, "")
	check.Must(f.T, f.builder.Start(f.context(), spec))
	got := f.want(spec, build.Succeeded, "")
	want := build.Result{
		State: build.Succeeded, CommitSHA: r.Git("rev-parse", "HEAD"),
		Artifact: build.Artifact{
			Dir: got.Artifact.Dir, Own: got.Artifact.Own, Shared: got.Artifact.Shared, Start: []string{"sh", "-c", "exec ./agent --serve"}, Env: map[string]string{"GREETING": "hello"},
			Graphs: []string{"a", "b"},
		},
		Record: build.Record{Builder: build.Version(), Rules: build.Rules, Base: got.Record.Base, Image: got.Artifact.Image},
	}
	if got.Artifact.Image != "" { // the image contains all the rest
		want.Artifact = build.Artifact{Image: got.Artifact.Image, Graphs: want.Artifact.Graphs}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("result (-want +got):\n%s", diff)
	}
	if (got.Record.Base != "") != (got.Artifact.Image != "") {
		f.Errorf("the record is %+v", got.Record)
	}
	if got.Artifact.Image != "" {
		return
	}
	if _, err := os.Stat(filepath.Join(got.Artifact.Dir, "agent")); err != nil {
		f.Errorf("the build command's file: %v", err)
	}
}

func fails(f fixture) {
	spec := f.start("seq 1 60; echo syntax error >&2; exit 3")
	got := f.want(spec, build.Failed, build.ReasonBuildCommandFailed, "exited with code 3", "seq 1 60", "\n59\n60\nsyntax error")
	if strings.Contains(got.Message, "\n20\n") {
		f.Errorf("message %q has more than the last 40 lines", got.Message)
	}
	if got.CommitSHA == "" {
		f.Error("a failure does not tell the commit")
	}
	if diff := cmp.Diff(got, f.await(spec)); diff != "" {
		f.Errorf("second Await (-first +second):\n%s", diff)
	}
}

func refNotFound(f fixture) {
	spec := NewSpec(NewRepo(f.T, nil).URL())
	spec.Ref, spec.Credentials = "nope", "ada:open-sesame"
	check.Must(f.T, f.builder.Start(f.context(), spec))
	if got := f.want(spec, build.Failed, build.ReasonRefNotFound, `"nope"`); strings.Contains(got.Message, "open-sesame") {
		f.Errorf("message %q shows the password", got.Message)
	}
}

func triedAnew(f fixture) {
	r := NewRepo(f.T, map[string]string{"framework.json": Framework("test ! -e left && touch left && exit 1")})
	spec := NewSpec(r.URL())
	for range 2 {
		check.Must(f.T, f.builder.Start(f.context(), spec))
		f.want(spec, build.Failed, build.ReasonBuildCommandFailed, "exited with code 1")
	}
	r.Commit(map[string]string{"framework.json": Framework("test ! -e left")})
	check.Must(f.T, f.builder.Start(f.context(), spec))
	f.want(spec, build.Succeeded, "")
}

func doneOnce(f fixture) {
	spec := NewSpec(NewRepo(f.T, map[string]string{"framework.json": Framework("echo built >>~/count")}).URL())
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			if err := f.builder.Start(f.context(), spec); err != nil {
				f.Error(err)
			}
		})
	}
	callers.Wait()
	first := f.want(spec, build.Succeeded, "")
	check.Must(f.T, f.builder.Start(f.context(), spec))
	if diff := cmp.Diff(first, f.await(spec)); diff != "" {
		f.Errorf("second build (-first +second):\n%s", diff)
	}
	// The next build of the workspace sees the files in the home that the builds share.
	next := NewSpec(NewRepo(f.T, map[string]string{"framework.json": Framework(`test "$(cat ~/count)" = built`)}).URL())
	next.Workspace = spec.Workspace
	check.Must(f.T, f.builder.Start(f.context(), next))
	f.want(next, build.Succeeded, "")
}

func timeIsOver(f fixture) {
	gate := f.newGate()
	spec := f.start("read go <" + string(gate))
	ended, cancel := context.WithCancel(f.context())
	cancel()
	short, cancel := context.WithTimeout(f.context(), 50*time.Millisecond)
	defer cancel()
	for _, ctx := range []context.Context{ended, short} {
		if got, err := f.builder.Await(ctx, spec.Revision); err != nil || got.State != build.Running {
			f.Errorf("got %+v, %v; want running", got, err)
		}
	}
	check.Must(f.T, gate.open())
	f.want(spec, build.Succeeded, "")
	if got, err := f.builder.Await(ended, spec.Revision); err != nil || got.State != build.Succeeded {
		f.Errorf("Await of a finished build without time: got %+v, %v", got, err)
	}
}

func removeRunning(f fixture) {
	spec := f.start("read go <" + string(f.newGate()))
	awaited := make(chan error, 1)
	ctx := f.context()
	go func() {
		result, err := f.builder.Await(ctx, spec.Revision)
		if err == nil && result.State != build.Absent {
			err = fmt.Errorf("build is %s", result.State)
		}
		awaited <- err
	}()
	check.Must(f.T, f.builder.Remove(f.context(), spec.Revision))
	check.Must(f.T, <-awaited)
	f.want(spec, build.Absent, "")
	check.Must(f.T, f.builder.Remove(f.context(), spec.Revision))
}

func removeFinished(f fixture) {
	spec := f.start("true")
	dir := f.want(spec, build.Succeeded, "").Artifact.Dir
	check.Must(f.T, f.builder.Remove(f.context(), spec.Revision))
	if _, err := os.Stat(dir); dir != "" && !errors.Is(err, os.ErrNotExist) {
		f.Errorf("the tree is still there: %v", err)
	}
	f.want(spec, build.Absent, "")
	check.Must(f.T, f.builder.Start(f.context(), spec))
	f.want(spec, build.Succeeded, "")
}

func notAnID(f fixture) {
	spec := NewSpec("file:///nowhere")
	spec.Revision = "../up"
	if err := f.builder.Start(f.context(), spec); err == nil {
		f.Error("Start: got no error")
	}
	if _, err := f.builder.Await(f.context(), spec.Revision); err == nil {
		f.Error("Await: got no error")
	}
	if err := f.builder.Remove(f.context(), spec.Revision); err == nil {
		f.Error("Remove: got no error")
	}
}

package replica_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/test/check"
)

// In a child process, these variables name the table's file and the poisoned revision: see
// deadlyServer.
const (
	deadlyFile     = "SLIPWAY_TEST_DEADLY_FILE"
	deadlyRevision = "SLIPWAY_TEST_DEADLY_REVISION"
)

// deadlyCode is the exit code of a server that crashed because of the start of an agent.
const deadlyCode = 2

func TestMain(m *testing.M) {
	if file := os.Getenv(deadlyFile); file != "" {
		fmt.Fprintln(os.Stderr, deadlyServer(file, os.Getenv(deadlyRevision)))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// deadly is a host of releases. One of these releases ends the server when it is started.
type deadly struct {
	counting

	poison string
	starts atomic.Int32
}

func (d *deadly) Prepare(_ context.Context, spec compute.Release) (replica.Prepared, *compute.Status) {
	return deadlyPrepared{counted{&d.counting, spec}, d}, nil
}

type deadlyPrepared struct {
	counted

	of *deadly
}

func (p deadlyPrepared) Start(ctx context.Context) (replica.Replica, *compute.Status) {
	if p.spec.Revision == p.of.poison {
		go panic("poison")
		select {}
	}
	p.of.starts.Add(1)
	return p.counted.Start(ctx)
}

// newTrying returns a target that starts replicas under the trials of an engine on the file.
func newTrying(host replica.Host, file string) (*replica.Target, *local.Engine, error) {
	tb, err := sqlite.Open(file)
	if err != nil {
		return nil, nil, err
	}
	idle := func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }
	engine, err := local.New(local.Config{
		Table: tb, Definitions: fstest.MapFS{"m.asl.json": {Data: []byte(`{"StartAt": "End", "States": {"End": {"Type": "Succeed"}}}`)}},
		Functions: map[string]workflow.TaskFunc{"work": idle}, Log: slog.New(slog.DiscardHandler), Crashed: true,
	})
	if err != nil {
		return nil, nil, err
	}
	return replica.New(host, replica.Limits{}, nil, slog.New(slog.DiscardHandler), nil, engine.Try), engine, nil
}

// deadlyServer is a process that starts a harmless release, and then the poisoned one.
func deadlyServer(file, poison string) error {
	target, _, err := newTrying(&deadly{poison: poison}, file)
	if err != nil {
		return err
	}
	for _, revision := range []string{id.New(time.Now()), poison} {
		ref := compute.Ref{Workspace: "w", Deployment: "d", Revision: revision}
		if err := target.Apply(context.Background(), compute.Release{Ref: ref}); err != nil {
			return err
		}
		if status, err := target.Await(context.Background(), ref); err != nil || status.State != compute.Healthy {
			return fmt.Errorf("the release is %+v (%w)", status, err)
		}
	}
	return errors.New("nothing has ended the process")
}

// TestAttackAReleaseWhoseStartEndsTheServer: the release fails after the second death, with a
// fault of the platform, and is not started a third time, neither as a release nor as a
// restart of it. Other releases are started.
func TestAttackAReleaseWhoseStartEndsTheServer(t *testing.T) {
	t.Parallel()
	file, poison := filepath.Join(t.TempDir(), "table.db"), id.New(time.Now())
	for range 2 {
		server := exec.Command(os.Args[0])
		server.Env = append(os.Environ(), deadlyFile+"="+file, deadlyRevision+"="+poison)
		output, err := server.CombinedOutput()
		if exited, ok := errors.AsType[*exec.ExitError](err); !ok || exited.ExitCode() != deadlyCode {
			t.Fatalf("the server ended with %v, want exit code %d\n%s", err, deadlyCode, output)
		}
	}
	host := &deadly{}
	target, engine, err := newTrying(host, file)
	check.Must(t, err)
	t.Cleanup(func() {
		target.Close(context.Background())
		engine.Close(context.Background())
	})
	ref := compute.Ref{Workspace: "w", Deployment: "d", Revision: poison}
	begin := map[string]func() error{
		"a release": func() error { return target.Apply(t.Context(), compute.Release{Ref: ref}) },
		"a restart": func() error { return target.Restart(t.Context(), compute.Release{Ref: ref}, id.New(time.Now())) },
	}
	for name, begin := range begin {
		check.Must(t, begin())
		if status, err := target.Await(t.Context(), ref); err != nil || status.State != compute.Failed || status.Reason != compute.ReasonInternal {
			t.Errorf("%s: it is %+v, %v; want it failed with %s", name, status, err, compute.ReasonInternal)
		}
	}
	if n := host.starts.Load(); n != 0 {
		t.Errorf("it was started %d times", n)
	}
	other := compute.Ref{Workspace: "w", Deployment: "d", Revision: id.New(time.Now())}
	check.Must(t, target.Apply(t.Context(), compute.Release{Ref: other}))
	if status, err := target.Await(t.Context(), other); err != nil || status.State != compute.Healthy {
		t.Errorf("another release is %+v, %v; want it healthy", status, err)
	}
}

// TestAStartThatGetsNoTurnInTime is not made, and its release fails with a fault of the platform.
func TestAStartThatGetsNoTurnInTime(t *testing.T) {
	t.Parallel()
	host, limits := &deadly{}, replica.Limits{ReadyLimit: time.Millisecond}
	target := replica.New(host, limits, nil, slog.New(slog.DiscardHandler), nil, func(ctx context.Context, _ string, _ func() error) error {
		<-ctx.Done()
		return ctx.Err()
	})
	t.Cleanup(func() { target.Close(context.Background()) })
	ref := compute.Ref{Workspace: "w", Deployment: "d", Revision: id.New(time.Now())}
	check.Must(t, target.Apply(t.Context(), compute.Release{Ref: ref}))
	if status, err := target.Await(t.Context(), ref); err != nil || status.State != compute.Failed || status.Reason != compute.ReasonInternal {
		t.Errorf("it is %+v, %v; want it failed with %s", status, err, compute.ReasonInternal)
	}
	if n := host.starts.Load(); n != 0 {
		t.Errorf("it was started %d times", n)
	}
}

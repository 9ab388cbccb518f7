package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/slipway-run/slipway/infra/statemachines"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// deadlyFile names the table's file in a child process: see deadlyServer.
const deadlyFile = "SLIPWAY_TEST_DEADLY_FILE"

// deadlyCode is the exit code of a server that a delivery has crashed.
const deadlyCode = 3

func newEngine(tb table.Table, function workflow.TaskFunc) (*local.Engine, error) {
	machine, err := statemachines.Files.ReadFile("webhook.asl.json")
	if err != nil {
		return nil, err
	}
	return local.New(local.Config{
		Table: tb, Definitions: fstest.MapFS{"webhook.asl.json": {Data: machine}}, Log: slog.New(slog.DiscardHandler), Crashed: true,
		Substitutions: map[string]string{"WebhookFunctionArn": "webhook"}, Functions: map[string]workflow.TaskFunc{"webhook": function},
	})
}

// deadlyServer is a process that continues the deliveries that are under way. Each of them
// ends the process.
func deadlyServer() error {
	tb, err := sqlite.Open(os.Getenv(deadlyFile))
	if err != nil {
		return err
	}
	engine, err := newEngine(tb, func(context.Context, json.RawMessage) (json.RawMessage, error) {
		os.Exit(deadlyCode)
		return nil, nil
	})
	if err != nil {
		return err
	}
	if err := engine.Resume(context.Background()); err != nil {
		return err
	}
	<-time.After(time.Minute)
	return errors.New("nothing has ended the process")
}

// TestAttackADeliveryThatEndsTheServer: the delivery is given up after the second death. It
// gets no other workflow, which would end the server again.
func TestAttackADeliveryThatEndsTheServer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "table.db")
	f := setUp(t)
	// The first server leaves a delivery that is under way: its function never answers.
	tb := fixtures.TableAt(t, file)
	called := make(chan struct{})
	engine, err := newEngine(tb, func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		close(called)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	f.must(err)
	f.must(engine.Resume(t.Context()))
	f.use(tb, engine)
	w, _ := f.create()
	f.tell("DEPLOYED")
	<-called
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	engine.Close(cut)
	f.must(tb.Close())
	for range 2 {
		server := exec.Command(os.Args[0])
		server.Env = append(os.Environ(), deadlyFile+"="+file)
		output, err := server.CombinedOutput()
		if exited, ok := errors.AsType[*exec.ExitError](err); !ok || exited.ExitCode() != deadlyCode {
			t.Fatalf("the server ended with %v, want exit code %d\n%s", err, deadlyCode, output)
		}
	}
	tb = fixtures.TableAt(t, file)
	calls := 0
	engine, err = newEngine(tb, func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		calls++
		return f.Task(ctx, input)
	})
	f.must(err)
	f.use(tb, engine)
	f.must(engine.Resume(t.Context()))
	for running := true; running; {
		list, err := tb.Query(t.Context(), keys.RunningExecutions())
		f.must(err)
		running = len(list.Items) > 0
	}
	d := f.deliveries(w.Ref)[0]
	if d.Status != webhook.Failed || !strings.Contains(d.Failure, "The server crashed twice") || len(f.receiver.all()) != 0 {
		t.Errorf("the delivery is %s (%s) after the receiver was told %d times", d.Status, d.Failure, len(f.receiver.all()))
	}
	f.moveTo(f.clock.Now().Add(time.Hour))
	f.must(f.Rescue(t.Context(), f.clock.Now()))
	engine.Close(t.Context())
	f.must(tb.Close())
	if calls != 1 {
		t.Errorf("the function was called %d times, want once, to give the delivery up", calls)
	}
}

// use makes the store work on a table and with an engine.
func (f *fixture) use(tb table.Table, engine workflow.Engine) {
	f.config.Table, f.config.Workflow, f.table = tb, engine, tb
	f.Store = webhook.NewStore(f.config)
}

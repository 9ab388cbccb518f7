package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// tryAll does two pieces of work, one after the other. The second ends as poison does.
func tryAll(engine *local.Engine, poison func() error) error {
	innocent := engine.Try(context.Background(), "innocent", func() error { return nil })
	return errors.Join(innocent, engine.Try(context.Background(), "poison", poison))
}

// newTrial is an engine that continues after the death of a server, which crashed if crashed is
// true.
func newTrial(t *testing.T, tb table.Table, crashed bool) *local.Engine {
	t.Helper()
	noFunction := func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }
	engine, err := newDeadlyEngine(tb, crashed, noFunction, nil)
	check.Must(t, err)
	t.Cleanup(func() { cutOff(engine) })
	return engine
}

// wantTrial tries work and checks the result, and whether the work was done.
func wantTrial(t *testing.T, engine *local.Engine, name string, want error) {
	t.Helper()
	done := false
	err := engine.Try(t.Context(), name, func() error {
		done = true
		return nil
	})
	if !errors.Is(err, want) || done != (want == nil) {
		t.Errorf("%s: got %v, and done is %v; want %v", name, err, done, want)
	}
}

// TestAttackWorkThatEndsTheServer, outside of executions: the third server does not do the
// work, and no later server does. Other work continues.
func TestAttackWorkThatEndsTheServer(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "table.db")
	dieWith(t, file, "trial")
	dieWith(t, file, "trial")
	for range 2 {
		engine := newTrial(t, fixtures.TableAt(t, file), true)
		wantTrial(t, engine, "poison", workflow.ErrServerDied)
		wantTrial(t, engine, "innocent", nil)
		wantTrial(t, engine, "new", nil)
		cutOff(engine)
	}
}

// TestWorkIsTriedAgainAfterOneDeath and is like any other work when it has ended.
func TestWorkIsTriedAgainAfterOneDeath(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "table.db")
	dieWith(t, file, "trial")
	wantTrial(t, newTrial(t, fixtures.TableAt(t, file), true), "poison", nil)
}

// TestWorkSurvivesAnyNumberOfKills, and is done at once: the start of a server waits for it.
func TestWorkSurvivesAnyNumberOfKills(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "table.db")
	for _, round := range []string{"trial", "killed trial", "killed trial"} {
		dieWith(t, file, round)
	}
	inBubbleOver(t, file, func(t *testing.T, tb *outsideTable) {
		engine, began := newTrial(t, tb, false), time.Now()
		wantTrial(t, engine, "poison", nil)
		if paused := time.Since(began); paused != 0 {
			t.Errorf("it was done after %s", paused)
		}
	})
}

// TestWorkThatFailsIsNoSuspect in whichever way it fails.
func TestWorkThatFailsIsNoSuspect(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "table.db")
	dieWith(t, file, "trial")
	engine, trouble := newTrial(t, fixtures.TableAt(t, file), true), errors.New("trouble")
	for range 3 {
		if err := engine.Try(t.Context(), "poison", func() error { return trouble }); !errors.Is(err, trouble) {
			t.Errorf("got %v", err)
		}
	}
	wantTrial(t, engine, "poison", nil)
}

// TestASuspectWaitsNoLongerThanItsContext for the work that is done before it, and later work
// does not wait for a suspect that has left.
func TestASuspectWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "table.db")
	dieWith(t, file, "trial")
	inBubbleOver(t, file, func(t *testing.T, tb *outsideTable) {
		engine := newTrial(t, tb, true)
		slow, end := make(chan error), make(chan struct{})
		go func() {
			slow <- engine.Try(t.Context(), "slow", func() error {
				<-end
				return nil
			})
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		suspect := make(chan error)
		go func() {
			suspect <- engine.Try(ctx, "poison", func() error {
				t.Error("the suspect was not alone")
				return nil
			})
		}()
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := engine.Try(impatient, "before", func() error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := <-suspect; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		wantTrial(t, engine, "after", nil)
		close(end)
		if err := <-slow; err != nil {
			t.Error(err)
		}
		wantTrial(t, engine, "poison", nil)
	})
}

// TestWorkOfOneNameIsNoSuspectOfItself begins work while work of the same name is done: replicas of
// a release start beside each other. Only a note that another engine has left tells of a death.
func TestWorkOfOneNameIsNoSuspectOfItself(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "table.db")
	dieWith(t, file, "trial")
	inBubbleOver(t, file, func(t *testing.T, tb *outsideTable) {
		engine, end, ended := newTrial(t, tb, true), make(chan struct{}), make(chan error)
		for range 2 {
			go func() {
				ended <- engine.Try(t.Context(), "poison", func() error {
					<-end
					return nil
				})
			}()
			synctest.Wait()
		}
		close(end)
		for range 2 {
			if err := <-ended; err != nil {
				t.Errorf("got %v", err)
			}
		}
	})
}

// delayedTable takes a second for each transaction.
type delayedTable struct{ table.Table }

func (tb delayedTable) Transact(ctx context.Context, writes ...table.Write) error {
	<-time.After(time.Second)
	return tb.Table.Transact(ctx, writes...)
}

// TestWorkThatBeginsTogetherTellsOfNoDeath starts a server three times, as if it had several
// releases to restore: their trials begin at the same time. Each server ends normally. So the
// execution is no suspect, and the third server calls its Task, too.
func TestWorkThatBeginsTogetherTellsOfNoDeath(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, tb *outsideTable) {
		called := make(chan struct{}, 3)
		function := func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			called <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		for server := range cap(called) {
			engine, err := newDeadlyEngine(delayedTable{tb}, true, function, nil)
			check.Must(t, err)
			var trials sync.WaitGroup
			for release := range 8 {
				trials.Go(func() {
					if err := engine.Try(t.Context(), fmt.Sprint(release), func() error { return nil }); err != nil {
						t.Error(err)
					}
				})
			}
			trials.Wait()
			if server == 0 {
				start(t, engine, "e1", `{}`)
			}
			check.Must(t, engine.Resume(t.Context()))
			<-time.After(time.Minute)
			cutOff(engine)
		}
		if len(called) != cap(called) {
			t.Errorf("%d servers called the Task, want %d", len(called), cap(called))
		}
	})
}

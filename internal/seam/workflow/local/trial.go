package local

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// attrTrial says how far the trial of a piece of work is. attrEngine is the id of the engine that
// wrote the note.
const attrTrial, attrEngine = "trial", "engine"

// A piece of work outside of executions is noted when it begins, and the note is removed when
// it has ended. A note that outlives its server is a suspicion if the server crashed.
const (
	trialFresh     = "fresh"     // it was done beside other work
	trialAlone     = "alone"     // a server had crashed with it, so it was done alone
	trialCondemned = "condemned" // two servers have crashed with it
)

// allTrials is the number of turns. There are never as many pieces of fresh work.
const allTrials = math.MaxInt64

// Try implements workflow.Trials. Work whose note a crashed server has left is done while no
// other such work is done. A note which says that such work was done alone condemns it. An engine
// that is closing writes no more notes.
//
// Work that must be alone waits until the work before it has ended, and later work waits behind
// it. Both stop waiting when ctx ends.
func (e *Engine) Try(ctx context.Context, name string, work func() error) error {
	if e.closing.Err() != nil {
		return work()
	}
	died, err := e.noteAlive(ctx)
	if err != nil {
		return fmt.Errorf("note that the server runs: %w", err)
	}
	t := trial{name: name, key: keys.Trial(name), state: trialFresh}
	note, err := e.table.Get(ctx, t.key)
	switch {
	case errors.Is(err, table.ErrNotFound):
		return e.tryNoted(ctx, t, work)
	case err != nil:
		return fmt.Errorf("get trial of %s: %w", name, err)
	case note.Text(attrTrial) == trialCondemned:
		return workflow.ErrServerDied
	case !died:
		return e.tryNoted(ctx, t, work)
	}
	crashedBefore := note.Text(attrTrial) == trialAlone
	switch {
	case note.Text(attrEngine) == e.id:
		// It is the note of work with the same name: replicas of a release start beside each other.
		t.state = note.Text(attrTrial)
	case crashedBefore && e.crashed:
		e.log.ErrorContext(ctx, "work is not tried again: servers crashed while they did it", "work", name)
		t.state = trialCondemned
		if err := e.noteTrial(ctx, t); err != nil {
			return err
		}
		return workflow.ErrServerDied
	case crashedBefore || e.crashed:
		t.state = trialAlone
	}
	return e.tryNoted(ctx, t, work)
}

// trial is a piece of work under a note.
type trial struct {
	name  string
	key   table.Key
	state string
}

// turns is the number of turns that the work needs.
func (t trial) turns() int64 {
	if t.state == trialAlone {
		return allTrials
	}
	return 1
}

// tryNoted does the work under a note when it has its turns. The note is also removed when the
// work panics: a panic ends the work, but not the server.
func (e *Engine) tryNoted(ctx context.Context, t trial, work func() error) error {
	if err := e.trials.Acquire(ctx, t.turns()); err != nil {
		return fmt.Errorf("wait for other trials: %w", err)
	}
	defer e.trials.Release(t.turns())
	if err := e.noteTrial(ctx, t); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteLimit)
		defer cancel()
		if err := e.table.Transact(ctx, table.Delete{Key: t.key}); err != nil {
			e.log.ErrorContext(ctx, "the end of work could not be noted: if the server dies, the work is suspected", "work", t.name, "error", err)
		}
	}()
	return work()
}

func (e *Engine) noteTrial(ctx context.Context, t trial) error {
	attrs := table.Attrs{attrKind: "trial", attrSchema: int64(1), attrTrial: t.state, attrEngine: e.id}
	if err := e.table.Transact(ctx, table.Put{Item: table.Item{Key: t.key, Attrs: attrs}}); err != nil {
		return fmt.Errorf("note a trial: %w", err)
	}
	return nil
}

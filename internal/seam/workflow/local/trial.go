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

// attrTrial says how far the trial of a piece of work is.
const attrTrial = "trial"

// A piece of work outside of executions is noted when it begins, and the note is removed when
// it has ended. A note that outlives its server is a suspicion.
const (
	trialFresh     = "fresh"     // it was done beside other work
	trialAlone     = "alone"     // a server had died with it, so it was done alone
	trialCondemned = "condemned" // two servers have died with it
)

// allTrials is the number of turns. There are never as many pieces of fresh work.
const allTrials = math.MaxInt64

// Try implements workflow.Trials. Work whose note a dead server has left is done while no
// other such work is done. A note which says that such work was done alone condemns it. An
// engine that is closing writes no more notes.
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
	key := keys.Trial(name)
	note, err := e.table.Get(ctx, key)
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		return fmt.Errorf("get trial of %s: %w", name, err)
	}
	state := ""
	if note != nil {
		state = note.Text(attrTrial)
	}
	switch {
	case state == trialCondemned:
		return workflow.ErrServerDied
	case state == trialAlone && died:
		e.log.ErrorContext(ctx, "work is not tried again: servers died while they did it", "work", name)
		if err := e.noteTrial(ctx, key, trialCondemned); err != nil {
			return err
		}
		return workflow.ErrServerDied
	case state == trialFresh && died:
		return e.tryNoted(ctx, key, trialAlone, allTrials, work)
	}
	return e.tryNoted(ctx, key, trialFresh, 1, work)
}

// tryNoted does the work under a note when it has its turns. The note is also removed when the
// work panics: a panic ends the work, but not the server.
func (e *Engine) tryNoted(ctx context.Context, key table.Key, trial string, turns int64, work func() error) error {
	if err := e.trials.Acquire(ctx, turns); err != nil {
		return fmt.Errorf("wait for other trials: %w", err)
	}
	defer e.trials.Release(turns)
	if err := e.noteTrial(ctx, key, trial); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteLimit)
		defer cancel()
		if err := e.table.Transact(ctx, table.Delete{Key: key}); err != nil {
			e.log.ErrorContext(ctx, "the end of work could not be noted: if the server dies, the work is suspected", "work", key.SK, "error", err)
		}
	}()
	return work()
}

func (e *Engine) noteTrial(ctx context.Context, key table.Key, trial string) error {
	item := table.Item{Key: key, Attrs: table.Attrs{attrKind: "trial", attrSchema: int64(1), attrTrial: trial}}
	if err := e.table.Transact(ctx, table.Put{Item: item}); err != nil {
		return fmt.Errorf("note a trial: %w", err)
	}
	return nil
}

package run

import (
	"context"

	"github.com/slipway-run/slipway/internal/agent/thread"
)

// TakeBack makes the state of the thread as it was before this run, for a run whose input the agent
// refuses: if the input stayed, the agent would get it with each later run and refuse each of them.
// TakeBack does nothing if the agent has taken the input in an earlier attempt.
func (a *Attempt) TakeBack(ctx context.Context) error {
	at := a.Log.At
	if at.Own() || at.Source != thread.SourceInput || at.Run != a.Run.Run {
		return nil
	}
	threads, ref := a.store.threads, a.Run.Ref.Ref
	before, err := threads.StateAt(ctx, ref, a.Run.Before)
	if err != nil {
		return err
	}
	pending, err := threads.Pending(ctx, ref, before.At, "")
	if err != nil {
		return err
	}
	log, err := threads.ReadFrame(ctx, thread.NewLog(ref, before).Fork(at.Number, pending))
	if err != nil {
		return err
	}
	return a.try(func(d *draft) error {
		d.Log, d.unshown = log, false
		return d.checkpoint(thread.Change{Source: thread.SourceFork, Values: log.Values})
	})
}

package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local/asl"
)

// ServerDiedError is the error name of a Task that is not tried again, because servers crashed
// while they worked on it. A Catch may name it; a Retry does not apply.
const ServerDiedError = "ServerDied"

// noteLimit bounds the write that notes the engine's end.
const noteLimit = 5 * time.Second

// firstPause and maxPause bound the pause before a Task with which several servers died.
const firstPause, maxPause = time.Second, time.Minute

// resumed notes in which state an execution was continued after a server had died. It is
// stored before the state's Task is tried again. It is removed when the execution has left the
// state, when the Task has failed in the ordinary way, or when the server has ended normally.
type resumed struct {
	State string `json:"state"`
	// Deaths counts the servers that died while the execution was in the state.
	Deaths int `json:"deaths,omitempty"`
	// Crashed is true if one of these servers crashed.
	Crashed bool `json:"crashed,omitempty"`
	// Alone is true if no other suspect was tried beside this one.
	Alone bool `json:"alone,omitempty"`
}

// pauseAfter is the pause before a Task is begun again with which so many servers died. If the Task
// makes the kernel kill the server, the server serves everything else during the pause, and people
// can end the work.
func pauseAfter(deaths int) time.Duration {
	if deaths < 2 {
		return 0
	}
	return min(firstPause<<min(deaths-2, 10), maxPause)
}

// suspect is an execution that was continued after a server's crash, and was in the same state
// when a later server crashed.
type suspect struct {
	claim *claim
	x     *execution
}

// noteAlive stores that the engine runs, and reports whether the previous engine died, which
// means that it has not taken its note away.
func (e *Engine) noteAlive(ctx context.Context) (died bool, err error) {
	e.mu.Lock()
	noted, known := e.noted, e.died
	e.mu.Unlock()
	if noted {
		return known, nil
	}
	item := table.Item{Key: keys.ServerAlive(), Attrs: table.Attrs{attrKind: "server", attrSchema: int64(1), attrEngine: e.id}}
	err = e.table.Transact(ctx, table.Put{Item: item, If: table.Absent()})
	if present, ok := errors.AsType[*table.ConditionFailed](err); ok {
		// Another goroutine of this engine may have just stored the engine's own note.
		died, err = present.Item.Text(attrEngine) != e.id, nil
	}
	if err == nil {
		e.mu.Lock()
		e.noted, e.died = true, died
		e.mu.Unlock()
	}
	return died, err
}

// noteEnd takes the note of noteAlive away, because the engine ends normally.
func (e *Engine) noteEnd(ctx context.Context) {
	e.mu.Lock()
	noted := e.noted
	e.noted = false
	e.mu.Unlock()
	if !noted {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteLimit)
	defer cancel()
	if err := e.table.Transact(ctx, table.Delete{Key: keys.ServerAlive()}); err != nil {
		e.log.Error("the end of the server could not be noted: the next start takes it for a death", "error", err)
	}
}

// resumeAfter prepares an execution to be continued, and reports whether it is a suspect.
func (x *execution) resumeAfter(died bool) bool {
	if !died {
		x.clearResumed()
		return false
	}
	state := x.machine.States[x.at.State]
	if state == nil || state.Type != asl.Task || x.at.RetryAt.After(x.engine.now()) || slices.Contains(x.engine.counted, x.record.Machine) {
		return false // it was not at work
	}
	before := x.deaths()
	if before.Crashed && x.engine.crashed {
		return true
	}
	x.noteResumed(resumed{Deaths: before.Deaths + 1, Crashed: before.Crashed || x.engine.crashed})
	return false
}

// deaths returns the note of the deaths in the present state.
func (x *execution) deaths() resumed {
	if x.record.Resumed == nil || x.record.Resumed.State != x.at.State {
		return resumed{}
	}
	return *x.record.Resumed
}

// noteResumed makes sure that, before the execution acts, it is stored that it was continued
// after a death. Then it acts after a pause, if servers died before.
func (x *execution) noteResumed(note resumed) {
	note.State = x.at.State
	x.record.Resumed, x.unsaved = &note, true
	if pause := pauseAfter(note.Deaths); pause > 0 {
		x.at.RetryAt = x.engine.now().Add(pause)
	}
}

// clearResumed forgets that the execution was resumed.
func (x *execution) clearResumed() {
	if x.record.Resumed != nil {
		x.record.Resumed, x.unsaved = nil, true
	}
	x.signalProgress()
}

// noteProgress is called when the execution is about to act. In another state than the state
// in which it was resumed, it is an ordinary execution again.
func (x *execution) noteProgress() {
	if x.record.Resumed != nil && x.record.Resumed.State != x.at.State {
		x.clearResumed()
	}
}

// signalProgress wakes the goroutine that waits until the execution leaves the state in which it
// was resumed.
func (x *execution) signalProgress() {
	if x.progressed != nil {
		close(x.progressed)
		x.progressed = nil
	}
}

// try continues suspects. A suspect that ended the server while it ran alone is condemned, and
// so is a suspect that is the only one; the other suspects are then innocent. Otherwise,
// several suspects are tried one after the other.
func (e *Engine) try(suspects []suspect) {
	guilty := func(s suspect) bool { return len(suspects) == 1 || s.x.record.Resumed.Alone }
	if len(suspects) > 0 && !slices.ContainsFunc(suspects, guilty) {
		go guard.Func(e.log, "try suspects", func() { e.tryInTurn(suspects) })()
		return
	}
	for _, s := range suspects {
		if s.x.condemned = guilty(s); !s.x.condemned {
			s.x.noteResumed(resumed{Crashed: true})
		}
		e.carryOn(s.claim, s.x)
	}
}

// tryInTurn continues each suspect when the previous one has left its state. When the engine
// closes, the stored records of the rest stay as they are.
func (e *Engine) tryInTurn(suspects []suspect) {
	e.log.Warn("servers crashed while they worked on these executions: they are continued one after the other", "executions", len(suspects))
	for _, s := range suspects {
		if e.closing.Err() != nil {
			e.free(s.claim)
			continue
		}
		progressed := make(chan struct{})
		s.x.progressed = progressed
		s.x.noteResumed(resumed{Crashed: true, Alone: true})
		e.carryOn(s.claim, s.x)
		select {
		case <-progressed:
		case <-e.closing.Done():
		}
	}
}

// condemn fails the Task of a state in which servers crashed twice, without another attempt.
func (x *execution) condemn(state *asl.State) error {
	x.condemned = false
	x.clearResumed()
	x.engine.log.Error("execution is not tried again: servers crashed while they worked on it",
		"machine", x.record.Machine, "name", x.record.Name, "state", state.Name)
	cause := fmt.Sprintf("The server crashed twice while it worked on the state '%s'.", state.Name)
	return x.catch(state, failureOf(&workflow.TaskError{Name: ServerDiedError, Cause: cause}))
}

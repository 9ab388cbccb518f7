package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sync/semaphore"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local/asl"
)

// Engine runs executions in this process. Make one with New.
type Engine struct {
	// id tells the engine's notes from those of other engines.
	id        string
	table     table.Table
	machines  map[workflow.Machine]*asl.Machine
	functions map[string]workflow.TaskFunc
	// counted are the machines of Config.CountAttempts.
	counted []workflow.Machine
	// unstored is Config.Unstored.
	unstored []workflow.Machine
	// crashed is Config.Crashed.
	crashed bool
	now     clock.Clock
	log     *slog.Logger
	// observe is nil when there is no observer.
	observe func(Event)

	// ctx is the parent of the contexts of all executions. cut ends it when Close waits no
	// longer.
	ctx context.Context
	cut context.CancelCauseFunc
	// closing ends when Close begins. beginClose ends it, under mu.
	closing    context.Context
	beginClose context.CancelFunc

	mu sync.Mutex
	// noted is true when the note that this engine runs is in the table.
	noted bool
	// died is true if the previous engine died.
	died bool
	// trials are the turns of work in Try. Fresh work takes one of them, suspected work takes
	// all.
	trials  *semaphore.Weighted
	claims  map[table.Key]*claim
	claimed sync.WaitGroup
}

var _ workflow.Engine = (*Engine)(nil)

// Closing ends when Close begins. A Task that only waits should then end, so that Close need
// not wait for it: the state is entered again when the execution is resumed.
func (e *Engine) Closing() context.Context { return e.closing }

// The reasons for which Start refuses an execution.
var (
	ErrNoMachine = errors.New("there is no such machine")
	ErrName      = errors.New("invalid name")
	ErrInput     = errors.New("invalid input")
)

// Start begins an execution; see workflow.Engine. A name is remembered until 24 hours after
// the execution has ended. Start refuses the names that Step Functions would refuse.
func (e *Engine) Start(ctx context.Context, machine workflow.Machine, name string, input json.RawMessage) error {
	if err := e.start(ctx, machine, name, input); err != nil {
		return fmt.Errorf("start execution %s of %s: %w", name, machine, err)
	}
	return nil
}

func (e *Engine) start(ctx context.Context, machine workflow.Machine, name string, input json.RawMessage) error {
	if e.machines[machine] == nil {
		return ErrNoMachine
	}
	if err := checkName(name); err != nil {
		return err
	}
	data, err := asl.Decode(input)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	for {
		c, mine, err := e.claim(keys.Execution(string(machine), name))
		if err != nil {
			return err
		}
		if mine {
			return e.begin(ctx, c, e.newExecution(machine, name, input, data))
		}
		// Another Start of the name is under way or done. If it did not succeed, this one
		// tries.
		if settled, err := c.wait(ctx); settled || err != nil {
			return err
		}
	}
}

// begin stores a new execution and starts it. An execution that is already stored is left
// alone if it has ended, and is continued if it is running: the claim proves that no goroutine
// of this process runs it.
func (e *Engine) begin(ctx context.Context, c *claim, x *execution) error {
	err := e.insert(ctx, x)
	var taken *table.ConditionFailed
	switch {
	case err == nil:
		x.reportData(Event{Type: ExecutionStarted}, x.data)
		close(c.settled)
	case !errors.As(err, &taken):
		e.release(c, err)
		return err
	default:
		if x, err = e.revive(c, taken.Item); x == nil {
			return err
		}
	}
	e.carryOn(c, x)
	return nil
}

// insert stores a new execution, unless it is to be stored later.
func (e *Engine) insert(ctx context.Context, x *execution) error {
	if x.version == 0 {
		return nil
	}
	item, err := x.record.item(workflow.Running, x.version)
	if err != nil {
		return err
	}
	return e.table.Transact(ctx, table.Put{Item: item, If: table.Absent()})
}

// checkName applies the service's rules for the names of executions.
func checkName(name string) error {
	if n := utf8.RuneCountInString(name); n == 0 || n > 80 {
		return fmt.Errorf("%w: a name has 1 to 80 characters", ErrName)
	}
	forbidden := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("<>{}[]?*\"#%\\^|~`$&,;:/", r)
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, forbidden) {
		return fmt.Errorf("%w: it has a character that is not allowed", ErrName)
	}
	return nil
}

// Stop ends an execution as Aborted; see workflow.Engine.
func (e *Engine) Stop(ctx context.Context, machine workflow.Machine, name string, cause string) error {
	if err := e.stop(ctx, machine, name, cause); err != nil {
		return fmt.Errorf("stop execution %s of %s: %w", name, machine, err)
	}
	return nil
}

const (
	// maxStops is how often stop tries to store the end. Each lost race means that the execution
	// has stored a step since it was read.
	maxStops = 50
	// longestStopPause bounds the random pause before stop tries again.
	longestStopPause = 20 * time.Millisecond
)

// stop stores the end of an execution on the version that it has read. When the execution stored a
// step meanwhile, stop pauses and tries again. An execution that has ended stays as it is.
func (e *Engine) stop(ctx context.Context, machine workflow.Machine, name, cause string) error {
	key := keys.Execution(string(machine), name)
	for range maxStops {
		item, r, err := e.read(ctx, key)
		if errors.Is(err, workflow.ErrNotFound) && e.runsUnstored(machine, key) {
			e.abort(key, Event{Machine: machine, Name: name, Type: ExecutionAborted, Time: e.now(), Cause: cause})
			return nil
		}
		if err != nil || statusOf(item) != workflow.Running {
			return err
		}
		r.end(e.now(), "", cause)
		err = e.replace(ctx, r, workflow.Aborted, item.Int(attrVersion))
		if err == nil {
			e.abort(key, Event{Machine: r.Machine, Name: r.Name, Type: ExecutionAborted, Time: r.Stopped, Cause: cause})
			return nil
		}
		if _, lost := errors.AsType[*table.ConditionFailed](err); !lost {
			return err
		}
		if !clock.Sleep(ctx, rand.N(longestStopPause)) {
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("the execution stored a step at each of %d tries", maxStops)
}

// Describe returns an execution; see workflow.Engine.
func (e *Engine) Describe(ctx context.Context, machine workflow.Machine, name string) (workflow.Execution, error) {
	key := keys.Execution(string(machine), name)
	item, r, err := e.read(ctx, key)
	if errors.Is(err, workflow.ErrNotFound) && e.runsUnstored(machine, key) {
		return workflow.Execution{Machine: machine, Name: name, Status: workflow.Running}, nil
	}
	if err != nil {
		return workflow.Execution{}, fmt.Errorf("describe execution %s of %s: %w", name, machine, err)
	}
	return r.execution(statusOf(item)), nil
}

// List returns the executions of a machine, both the running ones and those that ended within
// the last 24 hours, in the order of their names.
func (e *Engine) List(ctx context.Context, machine workflow.Machine) ([]workflow.Execution, error) {
	items, err := table.AllItems(ctx, e.table, keys.Executions(string(machine)))
	if err != nil {
		return nil, fmt.Errorf("list executions of %s: %w", machine, err)
	}
	executions := make([]workflow.Execution, 0, len(items))
	for _, item := range items {
		r, err := readRecord(item)
		if err != nil {
			return nil, fmt.Errorf("list executions of %s: %w", machine, err)
		}
		executions = append(executions, r.execution(statusOf(item)))
	}
	return executions, nil
}

func (e *Engine) read(ctx context.Context, key table.Key) (*table.Item, *record, error) {
	item, err := e.table.Get(ctx, key)
	if errors.Is(err, table.ErrNotFound) {
		return nil, nil, workflow.ErrNotFound
	}
	if err != nil {
		return nil, nil, err
	}
	r, err := readRecord(item)
	return item, r, err
}

// replace stores a record over the version that was read or written last, 0 for none.
func (e *Engine) replace(ctx context.Context, r *record, status workflow.Status, version int64) error {
	item, err := r.item(status, version+1)
	if err != nil {
		return err
	}
	unchanged := table.Equals(attrVersion, version)
	if version == 0 {
		unchanged = table.Absent()
	}
	return e.table.Transact(ctx, table.Put{Item: item, If: unchanged})
}

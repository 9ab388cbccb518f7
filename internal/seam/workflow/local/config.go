package local

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"golang.org/x/sync/semaphore"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local/asl"
)

// Config holds the parts of an engine.
type Config struct {
	// Table keeps the executions. Required.
	Table table.Table
	// Definitions holds a file <machine>.asl.json at its root for each machine. Required.
	Definitions fs.FS
	// Substitutions are the values of the ${Name} in definitions. For a FunctionName, the
	// value is a name in Functions.
	Substitutions map[string]string
	// Functions are the functions that Tasks may call.
	Functions map[string]workflow.TaskFunc
	// CountAttempts are machines whose functions durably count their own attempts, and end
	// work that has no attempt left. The engine continues their executions however often a
	// server has died with them.
	CountAttempts []workflow.Machine
	// Unstored are machines whose executions are stored only once they have to wait or to go on
	// after a Task: most of them never. The caller of Start must notice, at the start of a server,
	// which work of its own the previous server has left, and must call Start for it again.
	Unstored []workflow.Machine
	// Crashed says that the process of the previous engine, if it died, ended by a fault of its
	// own: it was not killed.
	Crashed bool
	// Now returns the time. The default is the machine's clock.
	Now clock.Clock
	// Log gets one line for each execution that failed, and errors that are returned to no
	// caller. The default is slog's.
	Log *slog.Logger
	// Observer, when not nil, is called with each event. It is called from many goroutines and
	// must return soon.
	Observer func(Event)
}

const definitionSuffix = ".asl.json"

// New checks all definitions and makes an engine. The error names every problem by machine,
// state and field. No execution runs before Resume or Start.
func New(config Config) (*Engine, error) {
	if config.Table == nil || config.Definitions == nil {
		return nil, errors.New("new workflow engine: Table and Definitions are required")
	}
	machines, err := loadMachines(config)
	if err != nil {
		return nil, fmt.Errorf("new workflow engine: %w", err)
	}
	ctx, cut := context.WithCancelCause(context.Background())
	closing, beginClose := context.WithCancel(context.Background())
	e := &Engine{
		id:         rand.Text(),
		table:      config.Table,
		machines:   machines,
		functions:  config.Functions,
		counted:    config.CountAttempts,
		unstored:   config.Unstored,
		crashed:    config.Crashed,
		now:        config.Now,
		log:        cmp.Or(config.Log, slog.Default()),
		observe:    config.Observer,
		ctx:        ctx,
		cut:        cut,
		closing:    closing,
		beginClose: beginClose,
		trials:     semaphore.NewWeighted(allTrials),
		claims:     map[table.Key]*claim{},
	}
	if e.now == nil {
		e.now = clock.System
	}
	return e, nil
}

// loadMachines parses every definition and joins the problems of all.
func loadMachines(config Config) (map[workflow.Machine]*asl.Machine, error) {
	files, err := fs.Glob(config.Definitions, "*"+definitionSuffix)
	if err != nil {
		return nil, fmt.Errorf("list definitions: %w", err)
	}
	if len(files) == 0 {
		return nil, errors.New("there are no definitions")
	}
	links := asl.Links{
		Substitutions: config.Substitutions,
		Function:      func(name string) bool { return config.Functions[name] != nil },
	}
	machines := map[workflow.Machine]*asl.Machine{}
	var problems []error
	for _, file := range files {
		text, err := fs.ReadFile(config.Definitions, file)
		if err != nil {
			return nil, fmt.Errorf("read definition: %w", err)
		}
		name := strings.TrimSuffix(file, definitionSuffix)
		machine, err := asl.Parse(name, text, links)
		problems = append(problems, err)
		machines[workflow.Machine(name)] = machine
	}
	return machines, errors.Join(problems...)
}

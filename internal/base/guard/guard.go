// Package guard makes sure that work that a tenant started cannot end the process. A panic in
// a goroutine ends the process, with all other tenants' agents and streams; guarded work
// recovers at its edge, logs the panic once with its stack, and ends with an error.
//
// A goroutine that does such work is started with a guarded function:
//
//	group.Go(guard.Func(log, "build", func() { ... }))
//	go guard.Func(log, "read answer", func() { ... })()
//
// An architecture test lists the goroutines that need no guard. Deferred functions of the work run
// before the panic is recovered, so a channel that the work must close, or a place that it must
// give back, belongs in a defer.
//
// A fatal error of the Go runtime, os.Exit or a signal ends the process without a panic, and
// passes every guard. See package workflow/local for what happens at the next start.
package guard

import (
	"fmt"
	"log/slog"
	"runtime/debug"
)

// PanicError is the error of work that panicked. The log has the stack.
type PanicError struct {
	// Doing names the work. Value is the value of the panic.
	Doing string
	Value any
}

func (e *PanicError) Error() string { return fmt.Sprintf("%s: panic: %v", e.Doing, e.Value) }

// Run does the work and returns its error. A panic is logged with its stack, and the error is a
// *PanicError then. A nil log stands for slog's default.
func Run(log *slog.Logger, doing string, work func() error) (err error) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		if log == nil {
			log = slog.Default()
		}
		log.Error("work panicked", "work", doing, "panic", value, "stack", string(debug.Stack()))
		err = &PanicError{Doing: doing, Value: value}
	}()
	return work()
}

// Func returns a function for a new goroutine that does the work and survives its panic. If
// another goroutine waits for the outcome, use ErrFunc or Run, which return it.
func Func(log *slog.Logger, doing string, work func()) func() {
	return func() {
		_ = Run(log, doing, func() error { // the panic is logged
			work()
			return nil
		})
	}
}

// ErrFunc is Func for work that returns an error, for example the work of an errgroup.
func ErrFunc(log *slog.Logger, doing string, work func() error) func() error {
	return func() error { return Run(log, doing, work) }
}

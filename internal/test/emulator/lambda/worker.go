package lambda

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
)

// worker is one process of a function and the Runtime API that it talks to. The pool's lock
// protects its fields, unless a field's comment says otherwise.
type worker struct {
	pool  *pool
	phase phase
	// call is the present call of the worker, calls is the channel by which it gets a call.
	call      *invocation
	calls     chan *invocation
	callTimer *time.Timer
	idleTimer *time.Timer

	process *child.Process
	program os.FileInfo
	began   time.Time
	// initError is the function's report about a failed start.
	initError *FunctionError
	// attached is closed when process is set. It and the output need no lock.
	attached chan struct{}
	output   *output
}

func newWorker(p *pool) *worker {
	w := &worker{pool: p, calls: make(chan *invocation, 1), attached: make(chan struct{})}
	w.output = &output{write: func(line []byte) error { return p.platform.write(p.function.Name, line) }}
	w.callTimer = stopTimer(func() { p.overdue(w) })
	w.idleTimer = stopTimer(func() { p.expired(w) })
	return w
}

// run runs the process from its start to its end.
func (w *worker) run() {
	failure := w.live()
	w.callTimer.Stop()
	w.idleTimer.Stop()
	w.pool.ended(w, failure)
}

// live starts the process and returns how it ended.
func (w *worker) live() *FunctionError {
	platform, f := w.pool.platform, w.pool.function
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return platformError(TypeEntrypoint, "Error: %s", err)
	}
	server := &http.Server{Handler: w.runtimeAPI(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // it ends with the process, and only the end of the process matters
	defer server.Close()

	program, err := os.Stat(f.Bootstrap)
	if err != nil {
		return platformError(TypeEntrypoint, "Error: %s: was the function built?", err)
	}
	began := time.Now()
	process, err := platform.registry.Start(child.Command{
		Args: []string{f.Bootstrap}, Dir: "/", Env: platform.environment(f, listener.Addr().String()), Stdout: w.output,
	})
	if err != nil {
		return platformError(TypeEntrypoint, "Error: %s", err)
	}
	w.attach(process, program, began)
	initTimer := time.AfterFunc(platform.config.InitLimit, w.failInit)
	defer initTimer.Stop()
	endWithPlatform := context.AfterFunc(platform.ctx, func() { w.stop(process) })
	defer endWithPlatform()

	<-process.Done()
	exit, err := process.Exit()
	w.output.flush()
	platform.config.Log.Debug("function process ended", "function", f.Name, "pid", process.Pid(), "exit", exit.String(), "error", err)
	return w.failureOf(exit)
}

// attach notes the process. If the worker is no longer wanted, attach ends the process.
func (w *worker) attach(process *child.Process, program os.FileInfo, began time.Time) {
	w.pool.mu.Lock()
	defer w.pool.mu.Unlock()
	w.process, w.program, w.began = process, program, began
	close(w.attached)
	if w.phase == ending {
		go w.stop(process)
	}
}

// failureOf returns the failure that the end of the process means for its call, or for the
// call that waited for its start.
func (w *worker) failureOf(exit child.Exit) *FunctionError {
	w.pool.mu.Lock()
	defer w.pool.mu.Unlock()
	reason := "exit status " + strconv.Itoa(exit.Code)
	if exit.Signal != 0 {
		reason = "signal: " + exit.Signal.String()
	}
	switch {
	case w.call != nil:
		return platformError(TypeExit, "RequestId: %s Error: Runtime exited with error: %s", w.call.id, reason)
	case w.initError != nil:
		return platformError(w.initError.Type, "%s", withOutput(w.initError.Message, w.output.last()))
	default:
		return platformError(TypeExit, "%s", withOutput("Error: Runtime exited with error: "+reason, w.output.last()))
	}
}

func withOutput(message, output string) string {
	if output == "" {
		return message
	}
	return fmt.Sprintf("%s\n%s", message, output)
}

// failInit ends a process that takes too long to start.
func (w *worker) failInit() {
	w.pool.mu.Lock()
	defer w.pool.mu.Unlock()
	if w.phase == starting {
		w.initError = platformError(TypeTimeout, "Error: Init took more than %s", w.pool.platform.config.InitLimit)
		w.kill()
	}
}

// isOf reports whether the process runs the program.
func (w *worker) isOf(program os.FileInfo) bool {
	return os.SameFile(w.program, program) && w.program.ModTime().Equal(program.ModTime())
}

// retire asks the process to end; it has no call. The pool's lock is held.
func (w *worker) retire() {
	w.phase = ending
	w.idleTimer.Stop()
	if w.process != nil {
		go w.stop(w.process)
	}
}

// kill ends the process at once. The pool's lock is held, so it does not wait.
func (w *worker) kill() {
	process, log := w.process, w.pool.platform.config.Log
	go func() {
		if err := process.Kill(); err != nil {
			log.Error("end function process", "pid", process.Pid(), "error", err)
		}
	}()
}

func (w *worker) stop(process *child.Process) {
	if err := process.Stop(context.Background(), stopGrace); err != nil {
		w.pool.platform.config.Log.Error("end function process", "pid", process.Pid(), "error", err)
	}
}

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
	pool *pool
	// lanes are as many as the process may have calls at once.
	lanes     []*lane
	idleTimer *time.Timer
	// ready says that the process has asked for a call, ending that it gets no more.
	ready, ending bool

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
	w := &worker{pool: p, attached: make(chan struct{})}
	for range p.function.Concurrency {
		w.lanes = append(w.lanes, newLane(w))
	}
	w.output = &output{write: func(line []byte) error { return p.platform.write(p.function.Name, line) }}
	w.idleTimer = stopTimer(func() { p.expired(w) })
	return w
}

// run runs the process from its start to its end.
func (w *worker) run() {
	how := w.live()
	w.idleTimer.Stop()
	w.pool.ended(w, how)
}

// death is how a process ended: start is the error of a call that waited for its start, reason is
// for the calls that it had.
type death struct {
	start  *FunctionError
	reason string
}

func unstarted(err error, hint string) death {
	return death{start: platformError(TypeEntrypoint, "Error: %s%s", err, hint)}
}

// live starts the process and returns how it ended.
func (w *worker) live() death {
	platform, f := w.pool.platform, w.pool.function
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return unstarted(err, "")
	}
	server := &http.Server{Handler: w.runtimeAPI(), ReadHeaderTimeout: time.Minute}
	// It ends with the process, and only the end of the process matters.
	go func() { _ = server.Serve(listener) }()
	defer server.Close()

	program, err := os.Stat(f.Bootstrap)
	if err != nil {
		return unstarted(err, ": was the function built?")
	}
	began := time.Now()
	process, err := platform.registry.Start(child.Command{
		Args: []string{f.Bootstrap}, Dir: "/", Env: platform.environment(f, listener.Addr().String()), Stdout: w.output,
	})
	if err != nil {
		return unstarted(err, "")
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
	return w.deathOf(exit)
}

// attach notes the process. If the worker is no longer wanted, attach ends the process.
func (w *worker) attach(process *child.Process, program os.FileInfo, began time.Time) {
	w.pool.mu.Lock()
	defer w.pool.mu.Unlock()
	w.process, w.program, w.began = process, program, began
	close(w.attached)
	if w.ending {
		go w.stop(process)
	}
}

// deathOf returns how the process ended.
func (w *worker) deathOf(exit child.Exit) death {
	w.pool.mu.Lock()
	defer w.pool.mu.Unlock()
	reason := "exit status " + strconv.Itoa(exit.Code)
	if exit.Signal != 0 {
		reason = "signal: " + exit.Signal.String()
	}
	start := platformError(TypeExit, "%s", withOutput("Error: Runtime exited with error: "+reason, w.output.last()))
	if w.initError != nil {
		start = platformError(w.initError.Type, "%s", withOutput(w.initError.Message, w.output.last()))
	}
	return death{start: start, reason: reason}
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
	if !w.ready {
		w.initError = platformError(TypeTimeout, "Error: Init took more than %s", w.pool.platform.config.InitLimit)
		w.kill()
	}
}

// isOf reports whether the process runs the program.
func (w *worker) isOf(program os.FileInfo) bool {
	return os.SameFile(w.program, program) && w.program.ModTime().Equal(program.ModTime())
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

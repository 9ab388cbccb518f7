// Package child runs programs as process groups that do not outlive the server.
//
// A Registry starts them. Each child leads a process group of its own, has no terminal, gets
// exactly the environment it is given, and is ended as a group. When the server is killed, the
// kernel ends its children on Linux. The next server that opens the same registry finds the
// remaining processes (grandchildren, or all of them on another system) by the registry's records
// and ends them.
package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/slipway-run/slipway/internal/base/guard"
)

// outputLimit bounds the wait for output if a program that left the process group still holds
// it open.
const outputLimit = time.Second

// Command is a program to start.
type Command struct {
	// Args are the program and its arguments. A program without a slash is looked up in the PATH of
	// Env.
	Args []string
	// Dir is the working directory. A program given by a relative path is looked up from this
	// directory.
	Dir string
	// Env is the whole environment. Only the registry's own mark is added to it, and no
	// variable of the server's.
	Env []string
	// Stdout and Stderr get the output, from one goroutine each. If Stderr is nil, the error
	// output goes to Stdout, in the order of writing.
	Stdout, Stderr io.Writer
	// Confine keeps the program away from a directory of the server's.
	Confine Confinement
	// Limits bound the resources that the program uses.
	Limits Limits
}

// Exit says how a process ended.
type Exit struct {
	// Code is the exit code, or -1 when a signal ended the process.
	Code int
	// Signal is the signal that ended the process, or 0.
	Signal syscall.Signal
	// OutOfMemory says that the process ended because it, or a process that it had started,
	// used more memory than its Limits.
	OutOfMemory bool
}

func (e Exit) String() string {
	if e.OutOfMemory {
		return "was ended because it used more memory than it may"
	}
	if e.Signal != 0 {
		return fmt.Sprintf("was ended by signal %d (%s)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}

// Process is a started child and its process group.
type Process struct {
	cmd     *exec.Cmd
	group   *group
	outputs []*output
	// mark is the name of the child's record. confined says that processes with the mark that have
	// left the group end with the child, too.
	mark     string
	confined bool
	forget   func() error

	// stopping and killed are closed by Stop and Kill.
	stopping, killed         chan struct{}
	stoppingOnce, killedOnce sync.Once

	// mu keeps signals away from a process id that the system may have given to another
	// process.
	mu   sync.Mutex
	gone bool

	done chan struct{}
	exit Exit
	err  error
}

// start runs the command in a control group. It calls keep with the process id, and forget
// once the whole group has ended and is removed. A confined command and all processes that it
// started end together, also processes that left the group.
func start(command Command, in *group, mark string, keep func(pid int) error, forget func() error) (*Process, error) {
	if command.Dir != "" {
		// The system's own error would name the program, not the directory.
		if _, err := os.Stat(command.Dir); err != nil {
			return nil, fmt.Errorf("start process: %w", err)
		}
	}
	program, err := lookPath(command)
	if err != nil {
		return nil, err
	}
	attributes := groupAttributes()
	in.join(attributes)
	p := &Process{
		cmd:      &exec.Cmd{Path: program, Args: command.Args, Dir: command.Dir, Env: command.Env, SysProcAttr: attributes},
		group:    in,
		mark:     mark,
		confined: command.Confine.Private != "",
		forget:   forget,
		stopping: make(chan struct{}),
		killed:   make(chan struct{}),
		done:     make(chan struct{}),
	}
	stdout, err := newOutput(command.Stdout)
	if err != nil {
		return nil, err
	}
	stderr := stdout
	p.outputs = append(p.outputs, stdout)
	if command.Stderr != nil {
		if stderr, err = newOutput(command.Stderr); err != nil {
			return nil, p.abandon(err)
		}
		p.outputs = append(p.outputs, stderr)
	}
	p.cmd.Stdout, p.cmd.Stderr = stdout.w, stderr.w
	if user := command.Confine.User; user != 0 {
		// Programs open their output again by the name /dev/stdout.
		if err := errors.Join(stdout.w.Chown(user, user), stderr.w.Chown(user, user)); err != nil {
			return nil, p.abandon(err)
		}
	}
	if err := startConfined(p.cmd, command.Confine, markOf(mark)); err != nil {
		return nil, p.abandon(fmt.Errorf("start %s: %w", command.Args[0], err))
	}
	p.err = keep(p.Pid())
	for _, out := range p.outputs {
		p.err = errors.Join(p.err, out.w.Close())
		go out.drain()
	}
	go guard.Func(nil, "follow a process to its end", p.wait)()
	return p, nil
}

// abandon closes the output of a process that was not started because of err.
func (p *Process) abandon(err error) error {
	for _, out := range p.outputs {
		err = errors.Join(err, out.abandon())
	}
	return err
}

// lookPath finds the program with the child's PATH, not the server's.
func lookPath(command Command) (string, error) {
	if len(command.Args) == 0 || command.Args[0] == "" {
		return "", errors.New("start process: no program is named")
	}
	name := command.Args[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := ""
	for _, entry := range command.Env {
		if value, ok := strings.CutPrefix(entry, "PATH="); ok {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(path) {
		candidate := filepath.Join(dir, name)
		if !filepath.IsAbs(candidate) {
			continue
		}
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && (command.Confine.User == 0 || Reaches(candidate)) {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("start %s: %w in PATH", name, exec.ErrNotFound)
}

// Pid is the id of the process and of its group.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the whole group has ended and all its output was handed over.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit says how the process ended, and returns the error that kept its output from being
// written or its group from being cleared. It may be called once Done is closed.
func (p *Process) Exit() (Exit, error) { return p.exit, p.err }

// Stop asks the group to end, kills the remaining processes when grace is over or ctx ends,
// and returns once the group has ended.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	p.stoppingOnce.Do(func() { close(p.stopping) })
	err := p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return err
	case <-time.After(grace):
	case <-ctx.Done():
	}
	return errors.Join(err, p.Kill())
}

// Kill ends the group at once and returns when it has ended.
func (p *Process) Kill() error {
	p.killedOnce.Do(func() { close(p.killed) })
	err := p.signal(syscall.SIGKILL)
	<-p.done
	return err
}

// signal sends sig to the group; a group that has ended is not an error.
func (p *Process) signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return nil
	}
	if err := syscall.Kill(-p.Pid(), sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal process group %d: %w", p.Pid(), err)
	}
	if sig == syscall.SIGKILL {
		return p.group.kill()
	}
	return nil
}

// wait follows the process to its end, clears its group and collects its output.
func (p *Process) wait() {
	defer close(p.done)
	var exited *exec.ExitError
	if err := p.cmd.Wait(); err != nil && !errors.As(err, &exited) {
		p.err = errors.Join(p.err, err)
	}
	p.exit = exitOf(p.cmd.ProcessState)
	p.letGroupFinish()
	err := p.signal(syscall.SIGKILL)
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	if p.confined {
		err = errors.Join(err, endConfined(p.mark))
	}
	p.err = errors.Join(p.err, err, p.noteMemory(), p.collectOutput(), p.clear())
}

// noteMemory finds out whether the process failed because it lacked memory.
func (p *Process) noteMemory() (err error) {
	if p.exit != (Exit{}) {
		p.exit.OutOfMemory, err = p.group.outOfMemory()
	}
	return err
}

// clear removes the control group and forgets the process. If the group cannot be removed, the
// next server removes it.
func (p *Process) clear() error {
	if err := p.group.remove(); err != nil {
		return err
	}
	return p.forget()
}

// letGroupFinish gives the rest of a group that was asked to stop its grace too: a shell ends
// at once, but the program that it started may still be finishing its work. Open output is the
// sign of a remaining process.
func (p *Process) letGroupFinish() {
	select {
	case <-p.stopping:
	default:
		return
	}
	for _, out := range p.outputs {
		select {
		case <-out.ended:
		case <-p.killed:
			return
		}
	}
}

// collectOutput waits for the end of the output, but not for programs that left the group and hold
// it open.
func (p *Process) collectOutput() error {
	var failed error
	for _, out := range p.outputs {
		if err := out.r.SetReadDeadline(time.Now().Add(outputLimit)); err != nil {
			failed = errors.Join(failed, err)
		}
		<-out.ended
		failed = errors.Join(failed, out.err, out.r.Close())
	}
	return failed
}

func exitOf(state *os.ProcessState) Exit {
	if state == nil {
		return Exit{Code: -1}
	}
	exit := Exit{Code: state.ExitCode()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal = status.Signal()
	}
	return exit
}

// Limits bound the resources that a program and all processes that it starts use together. A
// zero field bounds nothing. If the system has no means for a limit, nothing is bounded, and
// CanLimit says why.
type Limits struct {
	// CPU is in cores.
	CPU float64
	// MemoryMB is in MiB. A program that needs more is ended with all its processes, and its
	// Exit says so.
	MemoryMB int
	// Processes is the largest number of processes and threads at a time.
	Processes int
}

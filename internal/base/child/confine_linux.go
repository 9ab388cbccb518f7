package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// confineName is the program name that tells a copy of this program to confine itself and
// become another program.
const confineName = "slipway-confine"

const (
	// orderFD and failureFD are the file descriptors of the copy: for the order, and for the
	// reason why it failed.
	orderFD, failureFD = 3, 4
	// orderLimit bounds the text of an order, which holds a program's whole environment.
	orderLimit = 64 << 20
)

// order says which program a copy of this program has to become. It travels through a pipe,
// and not in the command line or the environment: other programs can read a command line, and
// the environment would act on the copy itself.
type order struct {
	Program   string
	Args, Env []string
	Confine   Confinement
	// Mark is the mark of the child's record, see setMark.
	Mark uint64
	// Server is the process whose end also ends the program.
	Server int
	// Grouped says that a control group may bound the processes of the program.
	Grouped bool
}

// failure is why a copy could not carry out its order.
type failure struct {
	Message string
	Errno   syscall.Errno
}

func (f failure) Error() string { return f.Message }

func (f failure) Unwrap() error {
	if f.Errno == 0 {
		return nil
	}
	return f.Errno
}

func init() { //nolint:gochecknoinits // a copy of the program confines itself before main runs
	if len(os.Args) == 1 && os.Args[0] == confineName {
		runtime.LockOSThread() // the code below takes powers from a thread
		fail(becomeOrdered())
	}
}

// closeFilesOnExec has the kernel close all open files except the standard ones when the ordered
// program begins. The server may have been started with files open, as by a shell with
// `exec 9>file`, and neither a user nor Landlock bounds what a program does with an open file.
// Kernels before 5.11 cannot do this by close_range(2).
func closeFilesOnExec() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, file := range open {
		fd, err := strconv.Atoi(file.Name())
		if err != nil {
			return err
		}
		if fd >= orderFD {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// becomeOrdered confines the calling thread and replaces this program by the ordered program.
// It returns only if that fails.
func becomeOrdered() error {
	if err := closeFilesOnExec(); err != nil {
		return fmt.Errorf("close the files of the server: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(os.NewFile(orderFD, "order"), orderLimit))
	if err != nil {
		return err
	}
	var o order
	if err := json.Unmarshal(text, &o); err != nil {
		return err
	}
	if err := yield(0); err != nil {
		return err
	}
	if err := lower(unix.RLIMIT_NOFILE, mostFiles); err != nil {
		return fmt.Errorf("limit open files: %w", err)
	}
	if o.Confine.User != 0 && !o.Grouped {
		if err := lower(unix.RLIMIT_NPROC, MostProcesses); err != nil {
			return fmt.Errorf("limit processes: %w", err)
		}
	}
	unix.Umask(0o022) // users read the files that platform steps install
	if err := setMark(o.Mark); err != nil {
		return fmt.Errorf("mark process: %w", err)
	}
	if err := o.Confine.enter(); err != nil {
		return fmt.Errorf("confine process: %w", err)
	}
	// When the user changes, the kernel forgets the signal for the parent's end.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	if os.Getppid() != o.Server {
		return errors.New("the server has ended")
	}
	err = syscall.Exec(o.Program, o.Args, o.Env)
	return &fs.PathError{Op: "exec", Path: o.Program, Err: err}
}

// fail tells the server why the program does not run.
func fail(err error) {
	told := failure{Message: err.Error()}
	errors.As(err, &told.Errno)
	if text, err := json.Marshal(told); err == nil {
		os.NewFile(failureFD, "failure").Write(text) //nolint:errcheck // there is nobody else to tell
	}
	os.Exit(1)
}

// startConfined starts the command under the Confinement. It returns once the program runs, or
// with the reason why it does not run.
func startConfined(cmd *exec.Cmd, c Confinement, mark uint64) (err error) {
	if c.Private == "" || !Confines() {
		if c.User != 0 {
			return errors.New("this system can give a program a user of its own only with Landlock")
		}
		if err := startBound(cmd); err != nil {
			return err
		}
		return yield(cmd.Process.Pid)
	}
	if err := c.openWays(); err != nil {
		return fmt.Errorf("open directories to the user of the workspace: %w", err)
	}
	text, err := json.Marshal(order{cmd.Path, cmd.Args, cmd.Env, c, mark, os.Getpid(), CanLimit() == nil})
	if err != nil {
		return err
	}
	orders, send, err := os.Pipe()
	if err != nil {
		return err
	}
	told, tell, err := os.Pipe()
	if err != nil {
		return errors.Join(err, orders.Close(), send.Close())
	}
	defer func() { err = errors.Join(err, told.Close()) }()
	cmd.Path, cmd.Args, cmd.Env, cmd.ExtraFiles = "/proc/self/exe", []string{confineName}, []string{}, []*os.File{orders, tell}
	started := startBound(cmd)
	if err := errors.Join(orders.Close(), tell.Close()); err != nil || started != nil {
		return errors.Join(started, err, send.Close())
	}
	// A copy that has ended does not read its order; its failure says why.
	_, sent := send.Write(text)
	if errors.Is(sent, syscall.EPIPE) {
		sent = nil
	}
	if err := awaitProgram(told, errors.Join(sent, send.Close())); err != nil {
		_ = cmd.Process.Kill() // it has ended, or must end
		_ = cmd.Wait()
		return err
	}
	return nil
}

// awaitProgram returns nil when the pipe is closed, which happens when the copy becomes the
// program, and otherwise the failure that the copy reports.
func awaitProgram(told io.Reader, sent error) error {
	text, err := io.ReadAll(told)
	if err = errors.Join(err, sent); err != nil || len(text) == 0 {
		return err
	}
	var failed failure
	if err := json.Unmarshal(text, &failed); err != nil {
		return err
	}
	return failed
}

// enter confines the calling thread.
func (c Confinement) enter() error {
	switch {
	case c.User != 0:
		if err := changeUser(c.User); err != nil {
			return fmt.Errorf("change user: %w", err)
		}
	case os.Geteuid() == 0:
		if err := dropCapabilities(); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := c.restrict(); err != nil {
		return err
	}
	return filterSystemCalls(c.User != 0)
}

// changeUser gives the calling thread a user and the group of the same number, without any
// capability.
func changeUser(user int) error {
	if err := errors.Join(unix.Setgroups(nil), unix.Setresgid(user, user, user), unix.Setresuid(user, user, user)); err != nil {
		return err
	}
	// The kernel takes the capabilities away with the user, except capabilities that the
	// server inherits or was started with to keep.
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capset(&header, &new([2]unix.CapUserData)[0])
}

// CanChangeUser returns nil if a program can get a user of its own beside a private directory,
// and otherwise why not.
func CanChangeUser(private string) error {
	if os.Geteuid() != 0 {
		return errors.New("the server is not root")
	}
	if !Confines() {
		return errors.New("the kernel has no Landlock")
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	if err := unix.Capget(&header, &have[0]); err != nil {
		return err
	}
	for name, capability := range map[string]int{
		"CAP_SETUID": unix.CAP_SETUID, "CAP_SETGID": unix.CAP_SETGID, "CAP_SETPCAP": unix.CAP_SETPCAP,
		"CAP_CHOWN": unix.CAP_CHOWN, "CAP_DAC_OVERRIDE": unix.CAP_DAC_OVERRIDE, "CAP_FOWNER": unix.CAP_FOWNER, "CAP_KILL": unix.CAP_KILL,
	} {
		if have[0].Effective&(1<<capability) == 0 {
			return fmt.Errorf("the server is root without %s", name)
		}
	}
	closed, err := closedAbove(private)
	if err == nil && closed != "" {
		err = fmt.Errorf("only root may enter %s, where the data directory is: keep the data elsewhere, as in /var/lib/slipway, or let others enter (chmod o+x %s)", closed, closed)
	}
	return err
}

// keptCapabilities are the capabilities that a program of root keeps. A container's root may have
// them, too. These capabilities do not concern the machine. CAP_KILL allows signals to processes of
// other users; where the kernel scopes signals, Landlock forbids signals to processes outside.
var keptCapabilities = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_SETPCAP,
	unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_SETFCAP,
}

// dropCapabilities keeps all other capabilities from programs that the thread starts.
func dropCapabilities() error {
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		if slices.Contains(keptCapabilities, capability) {
			continue
		}
		// EINVAL: the kernel knows no such capability. EPERM: this root may not drop
		// capabilities.
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	return nil
}

// mostFiles is how many files and sockets a confined program may hold open. It is less than a third
// of the ports that a system picks from. The kernel also bounds by it the files that all programs
// of a user have sent to each other and not taken yet.
const mostFiles = 8192

// lower bounds what the caller, and programs that it becomes or starts, may have of a resource.
func lower(resource int, most uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(resource, &limit); err != nil {
		return err
	}
	limit.Max = min(limit.Max, most)
	limit.Cur = limit.Max // the server's Go runtime may have raised it, and nothing says from where
	return unix.Setrlimit(resource, &limit)
}

// yield makes the kernel end a process before the server when memory runs out, and write no
// image of its memory to a file. Process 0 is the caller. A process that has already ended
// needs neither.
func yield(pid int) error {
	if err := unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("limit process %d: %w", pid, err)
	}
	name := "self"
	if pid != 0 {
		name = strconv.Itoa(pid)
	}
	err := os.WriteFile("/proc/"+name+"/oom_score_adj", []byte("500"), 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrPermission) {
		return nil // the files of an ending process belong to root
	}
	return err
}

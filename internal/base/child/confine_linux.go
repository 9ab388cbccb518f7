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

// confineName is the program name by which a copy of this program knows that it has to confine
// itself and become another program.
const confineName = "slipway-confine"

const (
	// orderFD and failureFD are the descriptors of the copy: what it has to become, and where it
	// says why it could not.
	orderFD, failureFD = 3, 4
	// orderLimit bounds the text of an order, which holds a program's whole environment.
	orderLimit = 64 << 20
)

// order says what a copy of this program has to become. It travels through a pipe, because command
// lines and environments are not for it: others read the first, and the second would act on the
// copy itself.
type order struct {
	Program   string
	Args, Env []string
	Confine   Confinement
	// Mark is the mark of the child's record, see setMark.
	Mark uint64
	// Server is the process whose end ends the program.
	Server int
}

// failure is why a copy could not become what it was told.
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
		runtime.LockOSThread() // what is given up below is given up by a thread
		fail(becomeOrdered())
	}
}

// becomeOrdered confines the calling thread and replaces this program by the one of its order. It
// returns only when that fails.
func becomeOrdered() error {
	unix.CloseOnExec(orderFD)
	unix.CloseOnExec(failureFD)
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
	unix.Umask(0o022) // users read what platform steps install
	if err := setMark(o.Mark); err != nil {
		return fmt.Errorf("mark process: %w", err)
	}
	if err := o.Confine.enter(); err != nil {
		return fmt.Errorf("confine process: %w", err)
	}
	// The kernel forgets whose end to follow when the user changes.
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

// startConfined starts the command with what Confinement says. It returns once the program runs, or
// with the reason why it does not.
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
	text, err := json.Marshal(order{cmd.Path, cmd.Args, cmd.Env, c, mark, os.Getpid()})
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
	// A copy that has ended reads nothing; its failure says why.
	_, sent := send.Write(text)
	if errors.Is(sent, syscall.EPIPE) {
		sent = nil
	}
	if err := awaitProgram(told, errors.Join(sent, send.Close())); err != nil {
		_ = cmd.Process.Kill() // it has ended, or must
		_ = cmd.Wait()
		return err
	}
	return nil
}

// awaitProgram returns when the pipe is closed, as it is when the copy becomes the program, or with
// what the copy says.
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

// changeUser makes the calling thread that of a user and the group of the same number, without any
// capability.
func changeUser(user int) error {
	if err := unix.Setgroups(nil); err != nil {
		return err
	}
	if err := unix.Setresgid(user, user, user); err != nil {
		return err
	}
	if err := unix.Setresuid(user, user, user); err != nil {
		return err
	}
	// The kernel takes the capabilities away with the user, but for those that the server inherits
	// or was started with to keep.
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	return unix.Capset(&header, &new([2]unix.CapUserData)[0])
}

// CanChangeUser returns nil where a program can be given a user of its own beside a private
// directory, and otherwise why not.
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

// keptCapabilities are what a program of root may do that a container's root may do, too: nothing
// that concerns the machine or processes of others.
var keptCapabilities = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_SETPCAP,
	unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_SETFCAP,
}

// dropCapabilities keeps programs that the thread starts from other capabilities.
func dropCapabilities() error {
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		if slices.Contains(keptCapabilities, capability) {
			continue
		}
		// EINVAL: the kernel knows no such capability; EPERM: this root is not one of the kind.
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	return nil
}

// yield has the kernel end a process before the server when memory runs out, and write no image of
// its memory to a file. Process 0 is the caller. A process that has ended by now needs neither.
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
		return nil // the files of a process that ends belong to root
	}
	return err
}

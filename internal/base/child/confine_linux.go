package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	readAccess = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fileAccess = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	allAccess  = readAccess | fileAccess | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER

	// neededABI is the version of Landlock that knows all of allAccess, scopeABI the one that keeps signals within the program.
	neededABI, scopeABI = 3, 6
)

// landlock is the version of Landlock that the kernel has, 0 for none.
var landlock = sync.OnceValue(func() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
})

// Confines tells whether this system can keep a program from a directory.
func Confines() bool { return landlock() >= neededABI }

// startConfined starts the command from a thread of its own that has given up what the command is kept from, and that lives until done is closed: the kernel takes
// its end for the end of the server.
func startConfined(cmd *exec.Cmd, c Confinement, done <-chan struct{}) error {
	if c.Private == "" || !Confines() {
		return startBound(cmd)
	}
	started := make(chan error, 1)
	go runConfinedThread(cmd, c, started, done)
	return <-started
}

func runConfinedThread(cmd *exec.Cmd, c Confinement, started chan<- error, done <-chan struct{}) {
	runtime.LockOSThread() // for good: the thread ends with this function
	err := c.enter()
	if err == nil {
		err = cmd.Start()
	}
	started <- err
	if err == nil {
		<-done
	}
}

// enter confines the calling thread and all that it starts.
func (c Confinement) enter() (err error) {
	attributes := unix.LandlockRulesetAttr{Handled_access_fs: allAccess}
	if landlock() >= scopeABI {
		attributes.Scoped = unix.LANDLOCK_SCOPE_SIGNAL
	}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes), 0) //nolint:gosec // the kernel takes a structure
	if errno != 0 {
		return fmt.Errorf("confine process: create ruleset: %w", errno)
	}
	defer func() { err = errors.Join(err, unix.Close(int(ruleset))) }()
	if err := c.permit(int(ruleset)); err != nil {
		return fmt.Errorf("confine process: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("confine process: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("confine process: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno != 0 {
		return fmt.Errorf("confine process: %w", errno)
	}
	return nil
}

// keptCapabilities are what a program of root may do that a container's root may do, too: nothing that concerns the machine or processes of others.
var keptCapabilities = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_SETPCAP,
	unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_SETFCAP,
}

// dropCapabilities keeps programs that the thread starts from other capabilities. A server that is not root has none to drop.
func dropCapabilities() error {
	if os.Geteuid() != 0 {
		return nil
	}
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

// permit adds what may be reached: names everywhere, all that is beside the way to the private directory, and what is named in it.
func (c Confinement) permit(ruleset int) error {
	private, err := filepath.EvalSymlinks(c.Private)
	if err != nil {
		return err
	}
	if private, err = filepath.Abs(private); err != nil {
		return err
	}
	if err := permit(ruleset, "/", unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil {
		return err
	}
	for dir := filepath.Dir(private); ; dir = filepath.Dir(dir) {
		if err := permitBeside(ruleset, dir, private); err != nil {
			return err
		}
		if dir == "/" {
			break
		}
	}
	for access, paths := range map[uint64][]string{allAccess: c.Write, readAccess: c.Read} {
		for _, path := range paths {
			if err := permit(ruleset, path, access); err != nil {
				return err
			}
		}
	}
	return nil
}

// permitBeside adds what is in a directory on the way to the private one and does not lead there.
func permitBeside(ruleset int, dir, private string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path, err := filepath.EvalSymlinks(filepath.Join(dir, entry.Name()))
		if err != nil || contains(path, private) || contains(private, path) {
			continue // it leads nowhere, to the private directory, or around it
		}
		access := uint64(allAccess)
		if path == "/sys" {
			access = readAccess // a program that may change its control group has no limits
		}
		if err := permit(ruleset, path, access); err != nil {
			return err
		}
	}
	return nil
}

// contains reports whether a path is a directory or in it.
func contains(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// permit adds a rule for a path and what is below it. One that is gone, or that the server itself may not look at, is left out.
func permit(ruleset int, path string, access uint64) (err error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	var found unix.Stat_t
	if err := unix.Fstat(fd, &found); err != nil {
		return err
	}
	if found.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= fileAccess
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0) //nolint:gosec // the kernel takes a structure
	if errno != 0 && errno != unix.EBADFD {                                                                                                              // sockets and pipes of the kernel have no path
		return fmt.Errorf("permit %s: %w", path, errno)
	}
	return nil
}

// yield has the kernel end the process before the server when memory runs out, and write no image of its memory to a file.
func yield(pid int) error {
	none := unix.Rlimit{}
	if err := unix.Prlimit(pid, unix.RLIMIT_CORE, &none, nil); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("limit process %d: %w", pid, err)
	}
	err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("500"), 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file calls the kernel directly. The library for Landlock, go-landlock, restricts all
// threads of a running program. For this it links a handler of signals into the server and, if
// there is a C compiler, C code. A copy of the server that becomes another program has only
// one thread that matters. The library also treats a path that may not be opened as an error,
// and a file as a directory.

const (
	readAccess = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// deviceAccess is the access that a device needs. fileAccess is all access that any file
	// may be given. allAccess is all access that a directory may be given.
	deviceAccess = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	fileAccess   = deviceAccess | unix.LANDLOCK_ACCESS_FS_EXECUTE
	allAccess    = readAccess | fileAccess | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER

	// The versions of Landlock. neededABI protects files from being cut short. portABI has
	// rules for ports, and deviceABI has rules for the actions of ioctl on devices. scopeABI
	// keeps signals and abstract sockets within the program.
	neededABI, portABI, deviceABI, scopeABI = 3, 4, 5, 6

	ruleOfPath, ruleOfPort = unix.LANDLOCK_RULE_PATH_BENEATH, 2
)

// portRule is the kernel's struct landlock_net_port_attr.
type portRule struct{ access, port uint64 }

// deviceDir has rules of its own.
const deviceDir = "/dev"

// devices are the files in /dev that programs need. Graphics processors are among them for
// agents that have models of their own. Terminals are not among them: the terminals of the server's
// operator may belong to the same user, and all programs of the machine share the number of
// terminals (ptmx), which no limit divides among users.
var devices = []string{
	"null", "zero", "full", "random", "urandom", "fd", "stdin", "stdout", "stderr",
	"nvidia*", "dri", "kfd",
}

// landlock is the version of Landlock in the kernel, 0 if the kernel has no Landlock.
var landlock = sync.OnceValue(func() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
})

// Confines reports whether this system can keep files from a program.
func Confines() bool { return landlock() >= neededABI }

// ruleset is a set of Landlock's rules that grows until it is enforced.
type ruleset struct {
	fd      int
	handled uint64
}

// restrict enforces the rules of the confinement for the calling thread and all processes that
// it starts.
func (c Confinement) restrict() (err error) {
	attributes := unix.LandlockRulesetAttr{Handled_access_fs: allAccess}
	if landlock() < deviceABI {
		attributes.Handled_access_fs &^= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if landlock() >= portABI && c.Ports != nil {
		attributes.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP
	}
	if landlock() >= scopeABI {
		attributes.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes), 0) //nolint:gosec // the kernel takes a structure
	if errno != 0 {
		return fmt.Errorf("create ruleset: %w", errno)
	}
	defer func() { err = errors.Join(err, unix.Close(int(fd))) }()
	rules := ruleset{int(fd), attributes.Handled_access_fs}
	if err := rules.permitAll(c); err != nil {
		return err
	}
	if attributes.Handled_access_net != 0 {
		for _, port := range c.Ports {
			if err := rules.add(ruleOfPort, unsafe.Pointer(&portRule{unix.LANDLOCK_ACCESS_NET_BIND_TCP, uint64(port)})); err != nil { //nolint:gosec // as above
				return fmt.Errorf("permit port %d: %w", port, err)
			}
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("restrict process: %w", errno)
	}
	return nil
}

// permitAll permits the paths that the program may reach: the entries beside the way to the
// private directory, some devices, and the paths that the confinement names.
func (r ruleset) permitAll(c Confinement) error {
	private, err := resolve(c.Private)
	if err != nil {
		return err
	}
	for dir := private; dir != "/"; {
		if dir = filepath.Dir(dir); dir == deviceDir {
			continue
		}
		if err := r.permitIn(dir, private); err != nil {
			return err
		}
	}
	for access, paths := range map[uint64][]string{allAccess: append(slices.Clip(c.Write), Public(private)...), readAccess: c.Read} {
		for _, path := range paths {
			if err := r.permit(path, access); err != nil {
				return err
			}
		}
	}
	return r.permitDevices(private)
}

// permitDevices permits the devices that programs need, except the device paths that contain the
// private directory.
func (r ruleset) permitDevices(private string) error {
	for _, pattern := range devices {
		paths, err := filepath.Glob(filepath.Join(deviceDir, pattern))
		if err != nil {
			return err
		}
		for _, path := range paths {
			if contains(path, private) {
				continue
			}
			if err := r.permit(path, deviceAccess|unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil {
				return err
			}
		}
	}
	return nil
}

// permitIn permits the entries of a directory on the way to the private one that do not lead
// there.
func (r ruleset) permitIn(dir, private string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil // the program does not need names that the server cannot see
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		var err error
		// The path dir is resolved, because it is above the resolved private path.
		path := filepath.Join(dir, entry.Name())
		if entry.Type()&fs.ModeSymlink != 0 {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil || path == deviceDir || contains(path, private) || contains(private, path) {
			// The entry leads nowhere, to the private directory or around it, or has rules of its
			// own.
			continue
		}
		// An entry that has become a link meanwhile is not followed.
		if err := r.permitOpened(path, unix.O_NOFOLLOW, readAccess); err != nil {
			return err
		}
	}
	return nil
}

// permit adds a rule for a path and everything below it. A path that is gone, or that the
// program's user may not look at, is left out.
func (r ruleset) permit(path string, access uint64) error { return r.permitOpened(path, 0, access) }

// permitOpened is permit with flags for the opening of the path.
func (r ruleset) permitOpened(path string, flags int, access uint64) (err error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
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
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access & r.handled, Parent_fd: int32(fd)}
	err = r.add(ruleOfPath, unsafe.Pointer(&rule))  //nolint:gosec // the kernel takes a structure
	if err != nil && !errors.Is(err, unix.EBADFD) { // sockets and pipes of the kernel have no path
		return fmt.Errorf("permit %s: %w", path, err)
	}
	return nil
}

func (r ruleset) add(kind int, rule unsafe.Pointer) error {
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), uintptr(kind), uintptr(rule), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

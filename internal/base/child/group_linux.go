package child

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// groupPrefix begins the names of the control groups that this package makes.
	groupPrefix = "slipway-"
	// serverGroup is the group that the server moves to if its own group has to be divided.
	serverGroup = groupPrefix + "server"
	// groupPatience bounds the wait for the end of killed processes of a group.
	groupPatience = 5 * time.Second
	// cpuPeriod is the span, in microseconds, in which a group may use its share of the processors.
	cpuPeriod = 100_000
)

// limitControllers are the controllers that the limits of a group need.
var limitControllers = []string{"cpu", "memory", "pids"}

// ownGroup is the control group that this server divides among its children, or why it cannot.
var ownGroup = sync.OnceValues(func() (string, error) {
	dir, err := findGroup()
	if err == nil {
		err = divide(dir, limitControllers)
	}
	return dir, err
})

// CanLimit returns nil if Limits are kept, and otherwise why they are not. Its first call may
// move this process into a control group below its own, because a divided group has no
// processes itself.
func CanLimit() error {
	_, err := ownGroup()
	return err
}

// findGroup returns the directory of the control group (cgroup v2) that this process is in.
func findGroup() (string, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		own, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		if !ok {
			continue
		}
		for mount := range strings.Lines(string(mounts)) {
			// The fields before the dash are ids, the device, the mounted part of the file
			// system, and the mount point. The field after the dash is the type.
			fields := strings.Fields(mount)
			dash := slices.Index(fields, "-")
			if dash < 5 || len(fields) < dash+2 || fields[dash+1] != "cgroup2" || !contains(fields[3], own) {
				continue
			}
			return filepath.Join(fields[4], strings.TrimPrefix(own, strings.TrimSuffix(fields[3], "/"))), nil
		}
	}
	return "", errors.New("no control groups of version 2 are mounted")
}

// divide makes sure that groups with the wanted controllers can be made in dir.
func divide(dir string, wanted []string) error {
	controllers, err := words(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, name := range wanted {
		if !slices.Contains(controllers, name) {
			return fmt.Errorf("the control group %s has no controller %s", dir, name)
		}
	}
	if err := enable(dir, wanted); err != nil {
		return err
	}
	tried, err := makeGroup(filepath.Join(dir, groupPrefix+rand.Text()), Limits{})
	if err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(tried.dir, "cgroup.kill"))
	return errors.Join(err, tried.remove())
}

// enable passes the controllers on to the groups in dir. Only the root of all groups may do so
// while it has processes. Therefore a server that is alone in its group moves to a group below
// it.
func enable(dir string, wanted []string) error {
	enabled, err := words(filepath.Join(dir, "cgroup.subtree_control"))
	if err != nil {
		return err
	}
	var change []string
	for _, name := range wanted {
		if !slices.Contains(enabled, name) {
			change = append(change, "+"+name)
		}
	}
	if len(change) == 0 {
		return nil
	}
	handOn := func() error { return write(dir, "cgroup.subtree_control", strings.Join(change, " ")) }
	if err := handOn(); !errors.Is(err, syscall.EBUSY) {
		return err
	}
	present, err := words(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	if !slices.Equal(present, []string{strconv.Itoa(os.Getpid())}) {
		return fmt.Errorf("the server is not alone in the control group %s, so that it cannot be divided", dir)
	}
	if err := os.Mkdir(filepath.Join(dir, serverGroup), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := write(filepath.Join(dir, serverGroup), "cgroup.procs", "0"); err != nil {
		return err
	}
	return handOn()
}

// words returns the words in a file.
func words(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	return strings.Fields(string(text)), err
}

// write sets a value of a group. Such files are never created.
func write(dir, name, value string) error {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}

// group is the control group of one child. A nil group means that the child has no control
// group.
type group struct {
	dir string
	// file is the open directory, in which a process is started; nil for a group of an earlier
	// server.
	file *os.File
}

// groupOf is the path for the group of a child, "" if the child needs no group or no group can
// be made.
func groupOf(mark string, limits Limits) string {
	dir, err := ownGroup()
	if err != nil || limits == (Limits{}) {
		return ""
	}
	return filepath.Join(dir, groupPrefix+mark)
}

// makeGroup makes a group with limits at a path that groupOf returned.
func makeGroup(dir string, limits Limits) (*group, error) {
	if dir == "" {
		return nil, nil
	}
	g := &group{dir: dir}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make control group: %w", err)
	}
	err := g.limit(limits)
	if err == nil {
		g.file, err = os.Open(g.dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make control group: %w", err), g.remove())
	}
	return g, nil
}

func (g *group) limit(limits Limits) error {
	if limits.CPU > 0 {
		if err := write(g.dir, "cpu.max", fmt.Sprintf("%d %d", max(1000, int64(limits.CPU*cpuPeriod)), cpuPeriod)); err != nil {
			return err
		}
	}
	if limits.Processes > 0 {
		if err := write(g.dir, "pids.max", strconv.Itoa(limits.Processes)); err != nil {
			return err
		}
	}
	if limits.MemoryMB == 0 {
		return nil
	}
	// A kernel that does not account for swap has no such file.
	if err := write(g.dir, "memory.swap.max", "0"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := write(g.dir, "memory.oom.group", "1"); err != nil {
		return err
	}
	return write(g.dir, "memory.max", strconv.FormatInt(int64(limits.MemoryMB)<<20, 10))
}

// join makes a process that is started with the attributes begin in the group.
func (g *group) join(attributes *syscall.SysProcAttr) {
	if g != nil {
		attributes.UseCgroupFD, attributes.CgroupFD = true, int(g.file.Fd())
	}
}

// kill ends all processes in the group, also processes that have left the child's process
// group.
func (g *group) kill() error {
	if g == nil {
		return nil
	}
	err := write(g.dir, "cgroup.kill", "1")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil // the group is gone
	}
	return err
}

// outOfMemory reports whether the kernel ended processes of the group because they used more
// memory than allowed.
func (g *group) outOfMemory() (bool, error) {
	if g == nil {
		return false, nil
	}
	text, err := os.ReadFile(filepath.Join(g.dir, "memory.events"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // its memory is not limited
	}
	for line := range strings.Lines(string(text)) {
		if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strings.TrimSpace(count) != "0", nil
		}
	}
	return false, err
}

// remove ends the remaining processes of the group and removes the group.
func (g *group) remove() error {
	if g == nil {
		return nil
	}
	for deadline := time.Now().Add(groupPatience); ; time.Sleep(5 * time.Millisecond) {
		if err := g.kill(); err != nil {
			return fmt.Errorf("clear control group: %w", err)
		}
		err := os.Remove(g.dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return g.close()
		}
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("remove control group: %w", err)
		}
	}
}

func (g *group) close() error {
	if g.file == nil {
		return nil
	}
	return g.file.Close()
}

// removeLeftGroup removes the group of a child that an earlier server left behind.
func removeLeftGroup(rec record) error {
	if filepath.Base(rec.Group) != groupPrefix+rec.mark {
		return nil
	}
	return (&group{dir: rec.Group}).remove()
}

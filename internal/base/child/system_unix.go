//go:build unix && !linux

package child

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// groupAttributes makes the child lead a group and a session of its own, which has no terminal.
func groupAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// startBound starts the command. This system cannot bind it to the life of the server; endLeftovers
// ends it later.
func startBound(cmd *exec.Cmd) error { return cmd.Start() }

// startTime asks the system when a process began. This time and the process id together name
// the process for good. A process that has ended has no start time.
func startTime(pid int) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ps", "-o", "lstart=", "-p", strconv.Itoa(pid))
	cmd.Env = []string{"PATH=/bin:/usr/bin", "LC_ALL=C", "TZ=UTC"}
	out, err := cmd.Output()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		return "", fmt.Errorf("ask for the start of process %d: %w", pid, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// endLeftovers kills the group of every recorded process that is still the same process.
func endLeftovers(left []record) error {
	for _, rec := range left {
		if rec.PID <= 0 || rec.Started == "" {
			continue
		}
		started, err := startTime(rec.PID)
		if err != nil {
			return err
		}
		if started != rec.Started {
			continue
		}
		if err := syscall.Kill(-rec.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("kill process group %d: %w", rec.PID, err)
		}
	}
	return nil
}

// Confines reports whether this system can keep a directory from a program.
func Confines() bool { return false }

// Gaps says what this system cannot keep from confined programs.
func Gaps(error) []string {
	return []string{"Only Linux confines programs: agents and builds can read and change all files that the server's user can."}
}

// Separates reports whether this system keeps the programs of tenants apart.
func Separates(error) bool { return false }

// PeerOf returns the user of the program that listens at the other end of a connection. Only Linux
// gives programs users of their own.
func PeerOf(*net.UnixConn) (user int, err error) {
	return 0, errors.New("this system does not tell whose program listens at a socket")
}

// CanChangeUser returns nil if a program can get a user of its own, and otherwise why not.
func CanChangeUser(string) error { return errors.New("only Linux confines programs") }

// Reaches reports whether users of their own may read a file.
func Reaches(string) bool { return true }

// startConfined starts the command, which this system cannot confine.
func startConfined(cmd *exec.Cmd, _ Confinement, _ uint64) error { return startBound(cmd) }

// markVariable is in the environment of each child; its value is the name of the child's record.
const markVariable = "SLIPWAY_PROCESS"

// markOf and endConfined do nothing here, because processes have no mark that stays.
func markOf(string) uint64 { return 0 }

func endConfined(string) error { return nil }

// HeldBytes returns nothing: processes without a mark that stays cannot be found.
func HeldBytes(string, []*Process) map[*Process]int64 { return nil }

// Sockets returns nothing, for the same reason.
func Sockets([]*Process) map[*Process]int { return nil }

// SocketsInUse returns 0: this system does not tell.
func SocketsInUse() int { return 0 }

// CanLimit returns nil if Limits are kept, and otherwise why they are not.
func CanLimit() error { return errors.New("only Linux has control groups") }

// group is empty here, because this system has no control groups.
type group struct{}

func groupOf(string, Limits) string { return "" }

func makeGroup(string, Limits) (*group, error) { return nil, nil }

func (*group) join(*syscall.SysProcAttr) {}

func (*group) kill() error { return nil }

func (*group) outOfMemory() (bool, error) { return false, nil }

func (*group) remove() error { return nil }

func removeLeftGroup(record) error { return nil }

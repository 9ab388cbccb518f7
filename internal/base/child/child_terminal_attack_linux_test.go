package child_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/test/check"
)

// newTerminal makes a terminal. It returns the end that programs have, which only the test's user
// may open by its path.
func newTerminal(t *testing.T) *os.File {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, keys.Close()) })
	check.Must(t, unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	check.Must(t, err)
	end, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, end.Close()) })
	return end
}

// TestAttackOnTerminals has a program that reads and writes the terminal of the server's user.
func TestAttackOnTerminals(t *testing.T) { //nolint:paralleltest // the attacks are on this process
	for name, g := range grounds(t) {
		path := newTerminal(t).Name()
		for _, script := range []string{"exec 3<" + path, "echo evil >" + path, "stty -F " + path + " size"} {
			if exit, out := g.run(t, script); exit == (child.Exit{}) {
				t.Errorf("%s: %s: %s, %s", name, script, exit, out)
			}
		}
	}
}

// TestAttackOnTheServersTerminal has a program of a server that a person has started at a terminal.
// The kernel lets every user open the terminal of the program's own session.
func TestAttackOnTheServersTerminal(t *testing.T) { //nolint:paralleltest // the attacks are on this process
	const atTerminal = "AT_TERMINAL"
	if os.Getenv(atTerminal) == "" {
		server := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestAttackOnTheServersTerminal$", "-test.v")
		server.Stdin, server.Env = newTerminal(t), append(os.Environ(), atTerminal+"=1")
		server.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if out, err := server.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("PASS")) {
			t.Errorf("at a terminal: %v\n%s", err, out)
		}
		return
	}
	own, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	check.Must(t, err)
	defer own.Close()
	for name, g := range grounds(t) {
		for _, script := range []string{"exec 3</dev/tty", "echo evil >/dev/tty", "stty -F /dev/tty size"} {
			if exit, out := g.run(t, script); exit == (child.Exit{}) {
				t.Errorf("%s: %s: %s, %s", name, script, exit, out)
			}
		}
	}
}

// TestAttackByOpeningTerminals has a program that makes terminals. A machine has some 4,096 of
// them, and nobody can log in when one program holds them all.
func TestAttackByOpeningTerminals(t *testing.T) { //nolint:paralleltest // the attacks are on this process
	for name, g := range grounds(t) {
		for _, script := range []string{"exec 3<>/dev/ptmx", "exec 3<>/dev/pts/ptmx", "python3 -c 'import os; os.openpty()'"} {
			if exit, out := g.run(t, script); exit == (child.Exit{}) {
				t.Errorf("%s: %s: %s, %s", name, script, exit, out)
			}
		}
	}
}

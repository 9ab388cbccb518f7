package standalone

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackWhereNothingConfines has agents of a second workspace on a machine without the means to
// keep them apart.
func TestAttackWhereNothingConfines(t *testing.T) {
	t.Parallel()
	if why := refusal(1); why != "" {
		t.Errorf("agents of the only workspace are refused: %s", why)
	}
	if why := refusal(2); !strings.Contains(why, "--trust-agents") {
		t.Errorf("agents of two workspaces are refused with %q", why)
	}
	// Programs of one user open its files to others and connect to its sockets on every kernel.
	for _, noUsers := range []error{errNotWanted, errors.New("the server is not root")} {
		if child.Separates(noUsers) {
			t.Errorf("programs of one user are kept apart: %v", noUsers)
		}
	}
	if child.Separates(nil) && !child.Confines() {
		t.Error("programs are kept apart without Landlock")
	}
}

// TestAttackWhereTheDataIsOutOfReach has a data directory that users of workspaces cannot
// enter, or a server that is not root: the gaps name the directory, and the files that agents
// can read.
func TestAttackWhereTheDataIsOutOfReach(t *testing.T) {
	t.Parallel()
	if !child.Confines() {
		return
	}
	closed := filepath.Join(t.TempDir(), "closed")
	check.Must(t, os.Mkdir(closed, 0o700))
	check.Must(t, childtest.Open(filepath.Dir(closed)))
	why := closed
	if os.Geteuid() != 0 {
		why = "the server is not root"
	}
	gaps := strings.Join(Gaps(filepath.Join(closed, "data"), child.DefaultUsers), "\n")
	for _, words := range []string{why, "~/.ssh", "those of other agents", "/dev/shm, and so to the machine's memory, is neither bounded nor removed"} {
		if !strings.Contains(gaps, words) {
			t.Errorf("it does not say %q:\n%s", words, gaps)
		}
	}
}

// TestTheServerSaysWhereAgentsGetNoSockets has a data directory with a long path: the system
// bounds the length of socket paths.
func TestTheServerSaysWhereAgentsGetNoSockets(t *testing.T) {
	t.Parallel()
	for length, want := range map[int]bool{60: false, 90: true} {
		gaps := strings.Join(Gaps("/"+strings.Repeat("x", length), child.DefaultUsers), "\n")
		if got := strings.Contains(gaps, "too long for Unix sockets"); got != want {
			t.Errorf("with a path of %d bytes it says:\n%s", length, gaps)
		}
	}
}

// TestTheServerSaysWhatBoundsProcesses if no control group does: the limit of a workspace's user.
func TestTheServerSaysWhatBoundsProcesses(t *testing.T) {
	t.Parallel()
	const data = "/var/lib/slipway"
	want := child.CanLimit() != nil && noUsers(data, child.DefaultUsers) == nil
	for users, want := range map[child.UserRange]bool{child.DefaultUsers: want, {}: false} {
		gaps := strings.Join(Gaps(data, users), "\n")
		if got := strings.Contains(gaps, "at most 8192 processes and threads together"); got != want {
			t.Errorf("with the users %v it says:\n%s", users, gaps)
		}
	}
}

// TestTheServerSaysWhichPasswordsItKeeps checks that the gaps name the credentials that
// commands of tenants do not get.
func TestTheServerSaysWhichPasswordsItKeeps(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://company:password@proxy.example:3128")
	gaps := strings.Join(Gaps(t.TempDir(), struct{ First, Last int }{}), "\n")
	if !strings.Contains(gaps, "The credentials in HTTPS_PROXY are kept") || strings.Contains(gaps, "company:password") {
		t.Errorf("it says:\n%s", gaps)
	}
}

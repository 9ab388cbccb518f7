package process_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackByAnAgentThatOutlives has an agent that leaves a process in a session of its own
// with an empty environment. The process must end with the deployment. The test runs with
// users for workspaces, if it may give them, and without.
func TestAttackByAnAgentThatOutlives(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	users, err := child.OpenUsers(filepath.Join(data, "users.json"), childtest.Users())
	check.Must(t, err)
	check.Must(t, childtest.Open(data))
	if child.CanChangeUser(data) != nil {
		users = nil
	}
	for i, users := range []*child.Users{nil, users} {
		m := newMachine(t, func(c *process.Config) {
			c.Dir, c.Private, c.Users = filepath.Join(data, "agents"+strconv.Itoa(i)), data, users
			// The process that is left is killed only after this time.
			c.StopGrace = 100 * time.Millisecond
		})
		tree := filepath.Join(data, "tree"+strconv.Itoa(i))
		check.Must(t, os.Mkdir(tree, 0o700))
		r := computetest.NewRelease(computetest.Serve)
		r.Artifact.Dir, r.Artifact.Own = tree, []string{tree}
		copied, err := os.ReadFile(program()) // users cannot enter the directory of the test's own
		check.Must(t, err)
		check.Must(t, os.WriteFile(filepath.Join(tree, "agent"), copied, 0o700))
		r.Artifact.Start = []string{"sh", "-c", "env -i setsid sh -c 'echo $$ >left; exec sleep 600' & while ! test -s left; do :; done; id -u >user; exec ./agent"}
		m.apply(t, r)
		m.want(t, r, compute.Healthy, "")
		text, err := os.ReadFile(filepath.Join(tree, "left"))
		check.Must(t, err)
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		check.Must(t, err)
		check.Must(t, syscall.Kill(pid, 0))
		want, err := users.Of(r.Workspace)
		check.Must(t, err)
		if users == nil {
			want = os.Geteuid()
		}
		if user, err := os.ReadFile(filepath.Join(tree, "user")); err != nil || string(user) != fmt.Sprintln(want) {
			t.Errorf("the agent runs as %q, %v; want %d", user, err, want)
		}
		check.Must(t, m.Remove(t.Context(), r.Ref))
		eventually(t, "the process has ended", func() bool {
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			return err != nil || strings.Contains(string(status), "State:\tZ")
		})
	}
}

// TestAttackOnAnotherAgentsSocket has an agent that connects to the socket of another
// workspace's agent, and an agent that makes the server connect to that socket by a link in
// place of its own socket.
func TestAttackOnAnotherAgentsSocket(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	check.Must(t, childtest.Open(data))
	if why := child.CanChangeUser(data); why != nil {
		if os.Geteuid() == 0 && child.Confines() {
			t.Errorf("root cannot give workspaces users of their own: %v", why)
		}
		return // without users of their own agents reach each other's sockets, as Gaps says
	}
	users, err := child.OpenUsers(filepath.Join(data, "users.json"), childtest.Users())
	check.Must(t, err)
	m := newMachine(t, func(c *process.Config) { c.Dir, c.Private, c.Users = filepath.Join(data, "agents"), data, users })
	serve := func(name string) (compute.Endpoint, string) {
		tree := filepath.Join(data, name)
		check.Must(t, os.Mkdir(tree, 0o700))
		copied, err := os.ReadFile(program()) // users cannot enter the directory of the test's own
		check.Must(t, err)
		check.Must(t, os.WriteFile(filepath.Join(tree, "agent"), copied, 0o700))
		r := computetest.NewRelease(computetest.Serve, "TAKE=socket")
		r.Artifact.Dir, r.Artifact.Own, r.Artifact.Start = tree, []string{tree}, []string{"./agent"}
		m.apply(t, r)
		m.want(t, r, compute.Healthy, "")
		endpoint, leave := m.acquire(t, r)
		t.Cleanup(leave)
		return endpoint, m.socketOf(t, endpoint)
	}
	victim, path := serve("victim")
	attacker, own := serve("attacker")
	for socket, want := range map[string]string{path: "permission denied", own: "reached"} {
		if got, err := m.tell(t, attacker, "reach "+socket); err != nil || !strings.Contains(got, want) {
			t.Errorf("an agent that connects to %s says %q, %v; want %q", socket, got, err, want)
		}
	}
	if names, err := m.tell(t, attacker, "list "+filepath.Dir(filepath.Dir(own))); err != nil || !strings.Contains(names, "permission denied") {
		t.Errorf("an agent lists the sockets of others: %s, %v", names, err)
	}
	_, err = m.tell(t, attacker, "relink "+path)
	check.Must(t, err)
	if got, err := m.tell(t, attacker, "pid"); err == nil || !strings.Contains(err.Error(), "listens at the agent's socket") {
		t.Errorf("the server was led to another agent, which said %q, %v", got, err)
	}
	if _, err := m.tell(t, victim, "pid"); err != nil {
		t.Errorf("the victim is gone: %v", err)
	}
}

// TestAttackWhereNothingConfines has a machine that cannot keep agents apart. The target
// starts no agent and says why.
func TestAttackWhereNothingConfines(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(c *process.Config) {
		c.Refuse = func(context.Context) (string, error) { return "this machine cannot keep them apart", nil }
	})
	r := computetest.NewRelease(computetest.Serve)
	m.apply(t, r)
	if got := m.want(t, r, compute.Failed, compute.ReasonStartFailed); !strings.Contains(got.Message, "cannot keep them apart") {
		t.Errorf("the agent is refused with %q", got.Message)
	}
}

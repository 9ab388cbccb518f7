package local_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/test/check"
)

func commandSpec(t *testing.T, command string) build.Spec {
	t.Helper()
	return buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework(command)}).URL())
}

// wantAllRefused runs a build that tries commands, and checks that none of them succeeds.
func (m machine) wantAllRefused(t *testing.T, commands ...string) {
	t.Helper()
	words := make([]string, len(commands))
	for i, command := range commands {
		words[i] = build.ShellWord(command)
	}
	spec := commandSpec(t, "for attempt in "+strings.Join(words, " ")+`; do if sh -c "$attempt"; then echo "did: $attempt"; fi; echo tried; done; exit 1`)
	result := m.wantFailure(t, spec, build.ReasonBuildCommandFailed)
	if strings.Contains(result.Message, "\ndid: ") || strings.Count(result.Message, "\ntried") != len(commands) {
		t.Errorf("not all of %q were tried and refused:\n%s", commands, result.Message)
	}
}

// withUsers gives workspaces users of their own, if the test may do that.
func withUsers(t *testing.T) func(*local.Config) {
	t.Helper()
	users, err := child.OpenUsers(filepath.Join(t.TempDir(), "users.json"), childtest.Users())
	check.Must(t, err)
	return func(c *local.Config) {
		if os.Geteuid() != 0 || !child.Confines() {
			return
		}
		check.Must(t, childtest.Open(c.Private))
		check.Must(t, child.CanChangeUser(c.Private))
		c.Users = users
	}
}

// TestAttackWhereNothingConfines uses a machine that cannot keep builds apart. It must report
// why it runs no command of a repository.
func TestAttackWhereNothingConfines(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(c *local.Config) {
		c.Refuse = func(context.Context) (string, error) { return "this machine cannot keep them apart", nil }
	})
	mark := filepath.Join(t.TempDir(), "mark")
	m.wantFailure(t, commandSpec(t, "touch "+mark), build.ReasonBuildCommandFailed, "is not run: this machine cannot keep them apart")
}

// TestAttackOnToolsOfPlatformSteps uses a PATH that leads to a program in a directory where
// agents can write: directly, and by a link in another directory.
func TestAttackOnToolsOfPlatformSteps(t *testing.T) { //nolint:paralleltest // it changes PATH
	dir := t.TempDir()
	planted := filepath.Join(dir, "builds", "revisions", "some", "bin")
	check.Must(t, os.MkdirAll(planted, 0o700))
	mark := filepath.Join(dir, "mark")
	check.Must(t, os.WriteFile(filepath.Join(planted, "git"), fmt.Appendf(nil, "#!/bin/sh\ntouch %s\n", mark), 0o700))
	outside := t.TempDir()
	check.Must(t, os.Symlink(filepath.Join(planted, "git"), filepath.Join(outside, "git")))
	for _, first := range []string{planted, outside} {
		t.Setenv("PATH", first+":"+os.Getenv("PATH"))
		m := openMachine(t, dir)
		m.wantFailure(t, commandSpec(t, "true"), build.ReasonRuntimeMissing, "git is not run, because it is at "+first, "where agents can write")
		check.Must(t, m.Close())
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the planted program ran")
	}
}

// TestAttackByABuildThatWrites plants a program in PATH, changes the program of the server,
// and changes the programs that start with the user's session.
func TestAttackByABuildThatWrites(t *testing.T) {
	t.Parallel()
	m := newMachine(t, withUsers(t))
	open := t.TempDir()
	check.Must(t, os.Chmod(open, 0o777))
	m.wantAllRefused(t,
		"echo evil >"+open+"/npm", "cp /bin/true "+program()+".new && mv "+program()+".new "+program(), "echo evil >>~root/.bashrc",
		"echo evil >/etc/cron.d/evil", "touch /tmp/evil", "cat /proc/sys/kernel/pid_max >/proc/sys/kernel/pid_max",
	)
	m.build(t, commandSpec(t, `mktemp && echo mine >~/file && test "$(cat ~/file)" = mine && chmod 700 ~/file`))
}

// TestAttackABuildThatLeavesSharedMemory writes files to memory that all programs share. They are
// there until the build and the agents of its workspace have ended.
func TestAttackABuildThatLeavesSharedMemory(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(child.SharedMemory); err != nil || os.Geteuid() != 0 || !child.Confines() {
		return // only root gives workspaces users of their own
	}
	m := newMachine(t, withUsers(t))
	gate, _ := newGate(t)
	check.Must(t, os.Chmod(gate, 0o644))
	check.Must(t, childtest.Open(filepath.Dir(gate)))
	left := filepath.Join(child.SharedMemory, "slipway-"+rand.Text())
	t.Cleanup(func() { check.Must(t, os.RemoveAll(left)) })
	spec := commandSpec(t, "echo here >"+left+"; read go <"+gate+"; cat "+left)
	m.start(t, spec)
	open, err := os.OpenFile(gate, os.O_WRONLY, 0) // when the build has written the file
	check.Must(t, err)
	user, err := m.cfg.Users.Of(spec.Workspace)
	check.Must(t, err)
	check.Must(t, m.cfg.Users.Enter(user)()) // the last agent of the workspace ends
	_, err = fmt.Fprintln(open)
	check.Must(t, errors.Join(err, open.Close()))
	if got := m.await(t, spec); got.State != build.Succeeded {
		t.Errorf("the build lost its file while it ran: %+v", got)
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("the build has left its file: %v", err)
	}
}

// TestAttackByABuildThatOutlives runs a build that leaves a process in a session of its own
// with an empty environment.
func TestAttackByABuildThatOutlives(t *testing.T) {
	t.Parallel()
	for _, adjust := range []func(*local.Config){withUsers(t), func(*local.Config) {}} {
		m := newMachine(t, adjust)
		made := m.build(t, commandSpec(t, "env -i setsid sh -c 'echo $$ >left; exec sleep 600' & while ! test -s left; do :; done"))
		text, err := os.ReadFile(filepath.Join(made.Artifact.Dir, "left"))
		check.Must(t, err)
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		check.Must(t, err)
		if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)); err == nil && !strings.Contains(string(status), "State:\tZ") {
			t.Errorf("process %d outlived its build", pid)
			check.Must(t, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
}

// TestAttackOnAnotherWorkspacesBuild tries what the user of one workspace can do to the files
// of another workspace, and to the files of the server.
func TestAttackOnAnotherWorkspacesBuild(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 || !child.Confines() {
		if child.CanChangeUser(t.TempDir()) == nil {
			t.Error("a server that is not root gives workspaces users of their own")
		}
		return
	}
	m := newMachine(t, withUsers(t))
	key := m.plantFile(t, "secret.key", "the key")
	victim := m.build(t, commandSpec(t, "echo secret >~/left && echo secret >file"))
	home := victim.Artifact.Shared[2]
	m.wantAllRefused(t,
		"chmod 777 "+m.cfg.Private, "chmod 666 "+key, "cat "+key, "chown $(id -u) "+key, "cat "+home+"/left", "chmod 777 "+home, "ls "+m.cfg.Private, "ls "+home,
		"cat "+victim.Artifact.Dir+"/file", "rm -r "+home,
	)
	closed := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")})
	check.Must(t, os.Chmod(closed.Dir, 0o700))
	m.wantFailure(t, buildtest.NewSpec(closed.URL()), build.ReasonRepoUnreachable, "Let everybody read it")
	again := commandSpec(t, `test "$(cat ~/left)" = secret && test "$(stat -c %u ~/left)" = "$(id -u)" && test "$(id -u)" != 0`)
	first := commandSpec(t, "echo secret >~/left")
	first.Workspace = id.New(deadline(t))
	again.Workspace = first.Workspace
	m.build(t, first)
	m.build(t, again)
}

// TestAttackThatReadsAProxysPassword prints the variables about proxies and registries that a
// command of a tenant gets.
func TestAttackThatReadsAProxysPassword(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://company:open-sesame@127.0.0.1:9")
	t.Setenv("PIP_EXTRA_INDEX_URL", "https://one.example/simple https://token-sesame@two.example/simple")
	t.Setenv("UV_INDEX", "ours=https://company:open-sesame@three.example/simple")
	m := newMachine(t)
	spec := commandSpec(t, "env")
	m.build(t, spec)
	log := m.log(t, spec)
	for _, want := range []string{"HTTPS_PROXY=http://127.0.0.1:9\n", "PIP_EXTRA_INDEX_URL=https://one.example/simple https://two.example/simple\n", "UV_INDEX=ours=https://three.example/simple\n"} {
		if !strings.Contains(log+"\n", want) {
			t.Errorf("the command is not told %q:\n%s", want, log)
		}
	}
	if strings.Contains(log, "sesame") {
		t.Errorf("the command knows a password:\n%s", log)
	}
}

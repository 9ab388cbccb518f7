package local_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/dockerfile"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/test/check"
)

// plantFile writes a file of the server, which no build may reach.
func (m machine) plantFile(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(m.cfg.Private, name)
	check.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	check.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func wantFile(t *testing.T, path, text string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != text {
		t.Errorf("%s has %q, %v; want %q", path, got, err, text)
	}
}

// TestAttackLinksThatABuildLeaves runs a build that leaves links to a file of the server
// wherever it can, under the names of all files that a server writes.
func TestAttackLinksThatABuildLeaves(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	key := m.plantFile(t, "secret.key", "the key")
	links := ""
	for _, name := range []string{"result.json", "result.json.new", "tmp/requirements.in", "tmp/lock.txt"} {
		links += fmt.Sprintf("; ln -sf %s ../%s", key, name)
	}
	spec := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true" + links)}).URL())
	m.build(t, spec)
	wantFile(t, key, "the key")
}

// TestAttackABuildThatSaysItsOwnResult writes a result into every directory that the agent of
// a finished build can write to.
func TestAttackABuildThatSaysItsOwnResult(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	spec := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")}).URL())
	want := m.build(t, spec)
	for _, own := range want.Artifact.Own {
		check.Must(t, os.WriteFile(filepath.Join(own, "result.json"), []byte(`{"state": "succeeded", "artifact": {"dir": "/", "start": ["true"]}}`), 0o600))
	}
	if got := m.await(t, spec); got.Artifact.Dir != want.Artifact.Dir {
		t.Errorf("the build's result is %+v, want %+v", got, want)
	}
}

// images notes the files that images would be made of.
type images struct{ seen map[string]string }

func (i images) Build(_ context.Context, _ string, _ dockerfile.Recipe, tree *os.Root, _ io.Writer) (string, error) {
	for _, name := range []string{"agent.go", "left"} {
		text, err := tree.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		i.seen[name] = string(text)
	}
	return "sha256:image", nil
}

func (images) Remove(context.Context, string) error { return nil }

// TestAttackABuildThatPutsAnotherTreeInPlace runs a build that makes its tree a link to the
// tree of another tenant.
func TestAttackABuildThatPutsAnotherTreeInPlace(t *testing.T) {
	t.Parallel()
	made := images{map[string]string{}}
	m := newMachine(t, func(c *local.Config) { c.Images = made })
	other := m.plantFile(t, "builds/revisions/other/src/agent.go", "the other's")
	command := fmt.Sprintf("echo mine >left; cd ..; mv src away; ln -s %s src", filepath.Dir(other))
	m.build(t, buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework(command), "agent.go": "my own"}).URL()))
	if made.seen["agent.go"] != "my own" || made.seen["left"] != "mine\n" {
		t.Errorf("the image was made of %q", made.seen)
	}
	wantFile(t, other, "the other's")
}

// TestAttackCommandsThatChangeWhatGitDoes builds a commit whose signature git would check with
// a program that the build names in the tree's configuration.
func TestAttackCommandsThatChangeWhatGitDoes(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(c *local.Config) { c.Images = images{map[string]string{}} })
	mark := filepath.Join(m.cfg.Private, "mark")
	program := filepath.Join(t.TempDir(), "program")
	check.Must(t, os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\ntouch %s\n", mark), 0o700))
	settings := fmt.Sprintf(`printf '[log]\nshowSignature = true\n[gpg]\nprogram = %s\n[core]\nfsmonitor = %s\n' >>.git/config`, program, program)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework(settings)})
	text, signed, _ := strings.Cut(r.Git("cat-file", "commit", "HEAD"), "\n\n")
	commit := filepath.Join(t.TempDir(), "commit")
	signature := "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n AAAA\n -----END PGP SIGNATURE-----\n\n"
	check.Must(t, os.WriteFile(commit, []byte(text+signature+signed+"\n"), 0o600))
	r.Git("update-ref", "refs/heads/main", r.Git("hash-object", "-t", "commit", "-w", commit))
	m.build(t, buildtest.NewSpec(r.URL()))
	if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the build's program ran as the server's: %v", err)
	}
}

// TestAttackClonesOfTheServersDirectory uses addresses that lead into the server's directory
// in different ways.
func TestAttackClonesOfTheServersDirectory(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	inside := buildtest.OpenRepo(t, filepath.Join(m.cfg.Private, "builds", "revisions", "other", "src"))
	check.Must(t, os.MkdirAll(inside.Dir, 0o700))
	inside.Git("init", "-q", "-b", "main")
	head := inside.Commit(map[string]string{"framework.json": buildtest.Framework("true")})
	outside := t.TempDir()
	for link, to := range map[string]string{"link": inside.Dir, "private": m.cfg.Private, "suffix.git": inside.Dir, "bare/.git": filepath.Join(inside.Dir, ".git")} {
		check.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(outside, link)), 0o700))
		check.Must(t, os.Symlink(to, filepath.Join(outside, link)))
	}
	at := func(path string) string { return "file://" + filepath.Join(outside, path) }
	for _, url := range []string{
		inside.URL(), inside.Dir, inside.URL() + "/.git", strings.Replace(inside.URL(), "builds", "%62uilds", 1), "file:///.." + inside.Dir,
		at("link"), at("private/builds/revisions/other/src"), at("suffix"), at("bare"),
	} {
		m.wantFailure(t, buildtest.NewSpec(url), build.ReasonRepoUnreachable, "is in the server's own directory")
	}
	for _, url := range []string{"file:/" + inside.Dir, "file://localhost" + inside.Dir, at("x") + "?/../../" + inside.Dir, at("x") + "#/../../" + inside.Dir} {
		m.wantFailure(t, buildtest.NewSpec(url), build.ReasonRepoUnreachable, "none that git can clone from")
	}

	// The files of a repository elsewhere lead git into the server's directory only if the
	// system cannot keep git from it.
	borrows := buildtest.NewRepo(t, nil)
	check.Must(t, os.WriteFile(filepath.Join(borrows.Dir, ".git", "objects", "info", "alternates"), []byte(filepath.Join(inside.Dir, ".git", "objects")+"\n"), 0o600))
	borrows.Git("update-ref", "refs/heads/main", head)
	points := buildtest.OpenRepo(t, t.TempDir())
	check.Must(t, os.WriteFile(filepath.Join(points.Dir, ".git"), []byte("gitdir: "+filepath.Join(inside.Dir, ".git")+"\n"), 0o600))
	contains := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")})
	contains.Git("submodule", "add", "-q", inside.URL(), "lib")
	contains.Commit(nil)
	for _, r := range []buildtest.Repo{borrows, points, contains} {
		if child.Confines() {
			m.wantFailure(t, buildtest.NewSpec(r.URL()), build.ReasonRepoUnreachable, "cannot be cloned")
		} else {
			m.build(t, buildtest.NewSpec(r.URL()))
		}
	}
}

// specOf returns a build of another workspace, with one build command.
func specOf(t *testing.T, command string) build.Spec {
	t.Helper()
	return buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework(command)}).URL())
}

// TestAttackAWorkspaceWithManyBuilds uses a workspace that takes all places and waits for
// more.
func TestAttackAWorkspaceWithManyBuilds(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(c *local.Config) { c.Places = 2 })
	running, openRunning := newGate(t)
	held, openHeld := newGate(t)
	greedy := []build.Spec{specOf(t, "read go <"+running), specOf(t, "read go <"+held), specOf(t, noteTime), specOf(t, noteTime)}
	for i := range greedy {
		greedy[i].Workspace = greedy[0].Workspace
		m.start(t, greedy[i])
	}
	modest := []build.Spec{specOf(t, noteTime), specOf(t, noteTime)}
	for _, s := range modest {
		m.start(t, s)
	}
	m.wantInOrder(t, modest) // beside the builds that keep the places
	openRunning()
	m.wantInOrder(t, greedy[2:])
	openHeld()
}

// TestAttackWorkspacesThatKeepAllPlacesTogether uses workspaces that take all places, and the one
// for workspaces without a place. When the first of their builds ends, the build of another
// workspace runs, before all builds that they have queued earlier.
func TestAttackWorkspacesThatKeepAllPlacesTogether(t *testing.T) {
	t.Parallel()
	for name, holders := range map[string][]int{"two places and one": {0, 0, 1}, "one place each": {0, 1, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, calls := newMachine(t, func(c *local.Config) { c.Places = 2 }), newSwitchboard(t)
			gate, open := newGate(t)
			workspaces := []string{id.New(time.Now()), id.New(time.Now()), id.New(time.Now())}
			start := func(of int, command string) build.Spec {
				spec := specOf(t, command)
				spec.Workspace = workspaces[of]
				m.start(t, spec)
				return spec
			}
			start(holders[0], "read go <"+gate)
			for _, of := range holders[1:] {
				start(of, calls.caller())
				calls.accept(t)
			}
			queued := start(0, noteTime)
			stranger := specOf(t, noteTime)
			m.start(t, stranger)
			open()
			if holders[1] != 0 { // with one build less, the first workspace may go on, too
				m.wantInOrder(t, []build.Spec{stranger, queued})
				return
			}
			m.build(t, stranger)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if got, err := m.Await(ctx, queued.Revision); err != nil || got.State != build.Running {
				t.Errorf("the build that was queued earlier is %s %v, want it waiting", got.State, err)
			}
		})
	}
}

// withEnv returns a configuration file of a JavaScript agent with an environment of its own,
// and with more members.
func withEnv(more string) string {
	return `{"graphs": {"agent": "./agent.mjs:graph"}, "env": {"GREETING": "hello"}` + more + `}`
}

// TestAttackARepositoryThatDoesNotInstallWithEnv builds repositories whose dependencies do not
// install and whose configuration file has an environment: the build fails, and the server goes on.
func TestAttackARepositoryThatDoesNotInstallWithEnv(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for name, c := range map[string]struct {
		files  map[string]string
		reason string
	}{
		"a runtime that is not there": {map[string]string{"framework.json": withEnv(`, "node_version": "99"`)}, build.ReasonRuntimeMissing},
		"a file with the environment": {map[string]string{
			"framework.json": `{"graphs": {"agent": "./agent.mjs:graph"}, "env": ".env", "node_version": "99"}`, ".env": "GREETING=hello\n",
		}, build.ReasonRuntimeMissing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m.wantFailure(t, buildtest.NewSpec(buildtest.NewRepo(t, c.files).URL()), c.reason)
		})
	}
}

// TestAttackARepositoryWhoseAuthCannotRun builds repositories whose own authentication their
// runtime cannot import, for processes and as images. Their commands do not run.
func TestAttackARepositoryWhoseAuthCannotRun(t *testing.T) {
	t.Parallel()
	made := images{map[string]string{}}
	for name, m := range map[string]machine{"process": newMachine(t), "image": newMachine(t, func(c *local.Config) { c.Images = made })} {
		for graph, more := range map[string]string{"./a.ts:a": "", "./a.rb:a": `, "start": "true"`} {
			files := map[string]string{"framework.json": `{"graphs": {"a": "` + graph + `"}, "build": "exit 1", "auth": {"path": "./auth.py:auth"}` + more + `}`}
			t.Run(name+"/"+graph, func(t *testing.T) {
				t.Parallel()
				m.wantFailure(t, buildtest.NewSpec(buildtest.NewRepo(t, files).URL()), build.ReasonConfigInvalid, "- auth.path: ")
			})
		}
	}
	t.Cleanup(func() {
		if len(made.seen) > 0 {
			t.Errorf("an image was made of %v", made.seen)
		}
	})
}

// TestAttackABuildWithEnvThatIsRemovedWhileItInstalls removes a build, as the deletion of its
// deployment does, while a command of its installation runs.
func TestAttackABuildWithEnvThatIsRemovedWhileItInstalls(t *testing.T) {
	t.Parallel()
	m, calls := newMachine(t), newSwitchboard(t)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": withEnv(""), "as-node": calls.caller()})
	spec := buildtest.NewSpec(r.URL())
	m.start(t, spec)
	wantDeath := calls.accept(t)
	check.Must(t, m.Remove(t.Context(), spec.Revision))
	wantDeath()
	if got := m.await(t, spec); got.State != build.Absent {
		t.Errorf("the build is %s %s, want it absent", got.State, got.Message)
	}
}

// brokenImages panics at the build of an image.
type brokenImages struct{ images }

func (brokenImages) Build(context.Context, string, dockerfile.Recipe, *os.Root, io.Writer) (string, error) {
	panic("poison")
}

// TestAttackABuildThatPanics checks that the build fails as a fault of the platform and gives
// its place back, and that the server goes on for other builds.
func TestAttackABuildThatPanics(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(c *local.Config) { c.Images, c.Places = brokenImages{}, 1 })
	repository := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")})
	for range 2 {
		result := m.wantFailure(t, buildtest.NewSpec(repository.URL()), build.ReasonInternal)
		if strings.Contains(result.Message, "poison") {
			t.Errorf("the message tells what the panic says: %s", result.Message)
		}
	}
}

// TestAttackAWorkspaceThatKeepsAllPlaces starts two builds of a workspace that do not end. The
// build of another workspace does not wait for them, and a third build of the same workspace
// does.
func TestAttackAWorkspaceThatKeepsAllPlaces(t *testing.T) {
	t.Parallel()
	m, calls := newMachine(t), newSwitchboard(t)
	stuck := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework(calls.caller())})
	greedy := buildtest.NewSpec(stuck.URL())
	for range 2 {
		spec := buildtest.NewSpec(stuck.URL())
		spec.Workspace = greedy.Workspace
		m.start(t, spec)
		calls.accept(t)
	}
	greedy.RepoURL = buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")}).URL()
	m.start(t, greedy)
	m.build(t, buildtest.NewSpec(greedy.RepoURL))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := m.Await(ctx, greedy.Revision); err != nil || got.State != build.Running {
		t.Errorf("the third build of one workspace is %s %v, want it waiting", got.State, err)
	}
}

package local_test

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/dockerfile"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/test/check"
)

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

package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestBuildsAndAgentsAreKeptFromTheServersFiles has a build command and then an agent that
// print which of the server's files they can read. Their last output is shown with their
// failure. If the kernel cannot protect the files from them, they can read all files.
func TestBuildsAndAgentsAreKeptFromTheServersFiles(t *testing.T) {
	t.Parallel()
	s := &server{config: testConfig(t)}
	check.Must(t, os.MkdirAll(s.config.Data, 0o700))
	key := fixtures.KeyAt(t, s.path("kms.key"))
	check.Must(t, s.openAgents(key))
	t.Cleanup(func() { check.Must(t, s.closers.Close(context.Background())) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	check.Must(t, os.WriteFile(s.path("credentials.json"), []byte("the credentials"), 0o600))
	script := "cat " + s.path("credentials.json") + "; head -c 1 " + s.path("kms.key") + " >/dev/null && echo read $((40 + 2)); cat own; exit 3"
	spec := func(command string) build.Spec {
		return buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework(command), "own": "its own\n"}).URL())
	}
	result := func(spec build.Spec) build.Result {
		t.Helper()
		check.Must(t, s.builder.Start(ctx, spec))
		result, err := s.builder.Await(ctx, spec.Revision)
		check.Must(t, err)
		return result
	}

	wantKept(t, "the build", result(spec(script)).Message)
	built := spec("true")
	artifact := result(built).Artifact
	artifact.Start = []string{"sh", "-c", script}
	ref := compute.Ref{Workspace: built.Workspace, Deployment: built.Deployment, Revision: built.Revision}
	check.Must(t, s.target.Apply(ctx, compute.Release{Ref: ref, Artifact: artifact, Token: "token"}))
	status, err := s.target.Await(ctx, ref)
	check.Must(t, err)
	wantKept(t, "the agent", status.Message)
}

// wantKept checks the output of a program that reads its own file and the server's files.
func wantKept(t *testing.T, who, said string) {
	t.Helper()
	for words, want := range map[string]bool{
		"exited with code 3": true, "its own": true, "the credentials": !child.Confines(), "read 42": !child.Confines(), "Permission denied": child.Confines(),
	} {
		if strings.Contains(said, words) != want {
			t.Errorf("that %s has said %q is %t:\n%s", who, words, !want, said)
		}
	}
}

package local_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/seam/upload"
)

// kept are the uploaded tarballs.
type kept map[upload.Ref][]byte

func (k kept) Open(_ context.Context, ref upload.Ref) (io.ReadCloser, error) {
	text, there := k[ref]
	if !there {
		return nil, upload.ErrMissing
	}
	return io.NopCloser(bytes.NewReader(text)), nil
}

// uploaded returns the Spec of a tarball's build. The tarball is kept, unless it is nil.
func uploaded(k kept, tarball []byte) build.Spec {
	spec := buildtest.NewSpec("")
	spec.Ref, spec.ConfigPath = "", "service/framework.json"
	ref := upload.Ref{Workspace: spec.Workspace, Deployment: spec.Deployment, Upload: buildtest.NewSpec("").Revision}
	if spec.Tarball = ref.Path(); tarball != nil {
		k[ref] = tarball
	}
	return spec
}

// TestATarballIsBuiltAsACommitIs builds an uploaded tarball.
func TestATarballIsBuiltAsACommitIs(t *testing.T) {
	t.Parallel()
	uploads := kept{}
	m := openMachine(t, t.TempDir(), func(c *local.Config) { c.Uploads = uploads })
	tarball := buildtest.Tarball(t, map[string]string{
		"service/framework.json": `{"graphs": {"a": "./agent.go:a"}, "build": "cp ../shared/agent agent", "start": "./agent --serve"}`,
		"service/agent.go":       "package main", "shared/agent": "#!/bin/sh",
	})
	spec := uploaded(uploads, tarball)
	got := m.build(t, spec)
	digest := sha256.Sum256(tarball)
	if got.CommitSHA != hex.EncodeToString(digest[:]) || len(got.Artifact.Graphs) != 1 {
		t.Errorf("got %+v", got)
	}
	if _, err := os.Stat(filepath.Join(got.Artifact.Dir, "agent")); err != nil {
		t.Error(err)
	}
}

// TestATarballThatCannotBeBuilt checks the messages that explain why.
func TestATarballThatCannotBeBuilt(t *testing.T) {
	t.Parallel()
	uploads := kept{}
	m := openMachine(t, t.TempDir(), func(c *local.Config) { c.Uploads = uploads })
	for name, c := range map[string]struct {
		spec          build.Spec
		reason, words string
	}{
		"never uploaded":        {uploaded(uploads, nil), build.ReasonSourceNotFound, "nothing was uploaded"},
		"not a tarball":         {uploaded(uploads, []byte("PK")), build.ReasonSourceInvalid, "no gzip tarball"},
		"without configuration": {uploaded(uploads, buildtest.Tarball(t, map[string]string{"a": "b"})), build.ReasonConfigNotFound, "service/framework.json"},
		"with a way out":        {uploaded(uploads, buildtest.Tarball(t, map[string]string{"../a": "b"})), build.ReasonSourceInvalid, "outside"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m.wantFailure(t, c.spec, c.reason, c.words)
		})
	}
}

// TestATarballOfSomebodyElse names a tarball of another deployment, which the domain does not
// let through.
func TestATarballOfSomebodyElse(t *testing.T) {
	t.Parallel()
	uploads := kept{}
	m := openMachine(t, t.TempDir(), func(c *local.Config) { c.Uploads = uploads })
	spec := uploaded(uploads, []byte("x"))
	spec.Deployment = buildtest.NewSpec("").Deployment
	m.wantFailure(t, spec, build.ReasonInternal)
}

//go:build moto

package codebuild_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/archive"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/upload"
	"github.com/slipway-run/slipway/internal/seam/upload/s3"
	"github.com/slipway-run/slipway/internal/test/check"
)

// uploaded returns the Spec of a tarball's build. The tarball is in the bucket, unless it is
// nil.
func (a *account) uploaded(tarball []byte) build.Spec {
	a.t.Helper()
	spec := newSpec("")
	spec.Ref, spec.ConfigPath = "", "service/framework.json"
	ref := upload.Ref{Workspace: spec.Workspace, Deployment: spec.Deployment, Upload: id.New(atNoon)}
	spec.Tarball = ref.Path()
	if tarball != nil {
		file := filepath.Join(a.images, s3.Prefix+ref.Path())
		check.Must(a.t, os.MkdirAll(filepath.Dir(file), 0o700))
		check.Must(a.t, os.WriteFile(file, tarball, 0o600))
	}
	return spec
}

func TestATarballBecomesAnImage(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	tarball := buildtest.Tarball(t, map[string]string{
		"service/framework.json": framework("cp ../shared/agent agent"), "shared/agent": "#!/bin/sh",
	})
	spec := a.uploaded(tarball)
	got := end(t, a.builder(), spec)
	if strings.Join(a.kept, " ") != spec.Tarball {
		t.Errorf("what is kept is %q", a.kept)
	}
	digest := sha256.Sum256(tarball)
	if got.State != build.Succeeded || got.CommitSHA != hex.EncodeToString(digest[:]) || len(got.Artifact.Graphs) != 2 {
		t.Errorf("got %+v", got)
	}
	if text := read(t, filepath.Join(a.images, "context", "app", "service", "agent")); text != "#!/bin/sh" {
		t.Errorf("what the build command copied is %q", text)
	}
	dockerfile := read(t, filepath.Join(a.images, "Dockerfile"))
	for _, line := range []string{`org.opencontainers.image.created="2026-11-22T12:00:00Z"`, `org.opencontainers.image.revision="` + got.CommitSHA + `"`} {
		if !strings.Contains(dockerfile, line) {
			t.Errorf("no %q in:\n%s", line, dockerfile)
		}
	}
}

// TestATarballThatCannotBeBuilt checks that the messages are the same as on one machine.
func TestATarballThatCannotBeBuilt(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	b := a.builder()
	wantFailure(t, b, a.uploaded(nil), build.ReasonSourceNotFound, archive.Missing.Message)
	wantFailure(t, b, a.uploaded([]byte("PK")), build.ReasonSourceInvalid, "no gzip tarball")
	wantFailure(t, b, a.uploaded(buildtest.Tarball(t, map[string]string{"a": "b"})), build.ReasonConfigNotFound, "service/framework.json")
	wantFailure(t, b, a.uploaded(buildtest.Tarball(t, map[string]string{"../a": "b"})), build.ReasonSourceInvalid, "outside")
	large := a.uploaded([]byte{})
	check.Must(t, os.Truncate(filepath.Join(a.images, s3.Prefix+large.Tarball), upload.MaxSize+1))
	wantFailure(t, b, large, build.ReasonSourceTooLarge, "209715201 bytes")
	if calls := read(t, a.calls); strings.Contains(calls, "docker") || strings.Contains(calls, "s3 cp --only-show-errors s3://"+uploadBucket+"/"+s3.Prefix+large.Tarball) {
		t.Errorf("it was gone on with:\n%s", calls)
	}
}

// TestATarballOfSomebodyElse names a tarball of another deployment, which the domain does not
// let through.
func TestATarballOfSomebodyElse(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	spec := a.uploaded([]byte("x"))
	spec.Deployment = newSpec("").Deployment
	if err := a.builder().Start(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "is no upload of deployment") {
		t.Errorf("got %v", err)
	}
}

var atNoon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

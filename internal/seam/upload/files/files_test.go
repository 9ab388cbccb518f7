package files_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/upload"
	"github.com/slipway-run/slipway/internal/seam/upload/files"
	"github.com/slipway-run/slipway/internal/seam/upload/uploadtest"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// open opens a store behind a server, with a clock.
func open(t *testing.T, dir string, now func() time.Time) (*files.Store, string) {
	t.Helper()
	key := fixtures.Key(t)
	store, err := files.Open(dir, key, now)
	check.Must(t, err)
	mux := web.NewMux(slog.New(slog.NewTextHandler(t.Output(), nil)))
	mux.Handle(files.Route, store.Handler(mux.Error))
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store, server.URL
}

func TestConformance(t *testing.T) {
	t.Parallel()
	uploadtest.Run(t, func(t *testing.T) (uploadtest.Store, string) { return open(t, t.TempDir(), time.Now) })
}

// TestAnAddressIsGoodForOneUpload changes each part of a granted address.
func TestAnAddressIsGoodForOneUpload(t *testing.T) {
	t.Parallel()
	at := time.Now()
	store, base := open(t, t.TempDir(), func() time.Time { return at })
	ref, other := uploadtest.NewRef(), uploadtest.NewRef()
	grant, err := store.Grant(t.Context(), ref, base)
	check.Must(t, err)
	bare, _, _ := strings.Cut(grant.URL, "?")
	unsigned, _, _ := strings.Cut(grant.URL, "&signature")
	for name, address := range map[string]string{
		"another object":     strings.Replace(grant.URL, ref.Upload, other.Upload, 1),
		"another deployment": strings.Replace(grant.URL, ref.Deployment, other.Deployment, 1),
		"another workspace":  strings.Replace(grant.URL, ref.Workspace, other.Workspace, 1),
		"more time":          strings.Replace(grant.URL, "expires=", "expires=9", 1),
		"no signature":       unsigned,
		"no query":           bare,
		"no object":          base + "/uploads/a/b/c",
	} {
		if status := uploadtest.Put(t, address, grant.Headers, strings.NewReader("x")); status != http.StatusForbidden {
			t.Errorf("%s: got %d", name, status)
		}
	}
	if status := uploadtest.Put(t, grant.URL, nil, strings.NewReader("x")); status != http.StatusUnsupportedMediaType {
		t.Errorf("without its headers: got %d", status)
	}
	at = at.Add(upload.Lifetime + time.Second)
	if status := uploadtest.Put(t, grant.URL, grant.Headers, strings.NewReader("x")); status != http.StatusForbidden {
		t.Errorf("when its time is over: got %d", status)
	}
	at = at.Add(-2 * time.Second)
	if status := uploadtest.Put(t, grant.URL, grant.Headers, strings.NewReader("x")); status != http.StatusOK {
		t.Errorf("a second before: got %d", status)
	}
}

// zeros returns n zero bytes. The request does not tell the server how many there are.
func zeros(n int64) io.Reader {
	return struct{ io.Reader }{io.LimitReader(endless{}, n)}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestWhatIsTooLargeLeavesNothing sends more bytes than are allowed, with and without the
// length in the request.
func TestWhatIsTooLargeLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, base := open(t, dir, time.Now)
	grant, err := store.Grant(t.Context(), uploadtest.NewRef(), base)
	check.Must(t, err)
	if status := uploadtest.Put(t, grant.URL, grant.Headers, zeros(upload.MaxSize+1)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("unsaid: got %d", status)
	}
	said := httptest.NewRequest(http.MethodPut, grant.URL, strings.NewReader(""))
	said.ContentLength = upload.MaxSize + 1
	said.Header.Set("Content-Type", upload.ContentType)
	var problem error
	store.Handler(func(_ http.ResponseWriter, _ *http.Request, err error) { problem = err }).ServeHTTP(httptest.NewRecorder(), said)
	if !fault.Is(problem, fault.TooLarge) {
		t.Errorf("said: got %v", problem)
	}
	if left := fileNames(t, dir); len(left) != 0 {
		t.Errorf("it leaves %v", left)
	}
}

// TestNothingComesAfterAnErasure sends tarballs to a deployment that was erased when it had a
// tarball, and when it had none.
func TestNothingComesAfterAnErasure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, base := open(t, dir, time.Now)
	ref := uploadtest.NewRef()
	for _, before := range []int{1, 0} {
		var grants []upload.Grant
		for range before + 1 {
			ref.Upload = uploadtest.NewRef().Upload
			grant, err := store.Grant(t.Context(), ref, base)
			check.Must(t, err)
			grants = append(grants, grant)
		}
		for _, grant := range grants[:before] {
			if status := uploadtest.Put(t, grant.URL, grant.Headers, strings.NewReader("x")); status != http.StatusOK {
				t.Fatalf("before: got %d", status)
			}
		}
		check.Must(t, store.Erase(t.Context(), ref.Workspace, ref.Deployment))
		for _, grant := range grants {
			if status := uploadtest.Put(t, grant.URL, grant.Headers, strings.NewReader("x")); status != http.StatusForbidden {
				t.Errorf("after an erasure of %d: got %d", before, status)
			}
		}
		if left := fileNames(t, dir); len(left) != 0 {
			t.Errorf("after an erasure of %d: %v are left", before, left)
		}
	}
}

// TestATarballThatArrivesDuringAnErasure erases the deployment while its tarball is received.
func TestATarballThatArrivesDuringAnErasure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, base := open(t, dir, time.Now)
	ref := uploadtest.NewRef()
	grant, err := store.Grant(t.Context(), ref, base)
	check.Must(t, err)
	// The store asks for the rest of the body after it has found the deployment's directory.
	body, rest := io.Pipe()
	go func() {
		_, failed := rest.Write([]byte("half"))
		_ = rest.CloseWithError(errors.Join(failed, store.Erase(context.Background(), ref.Workspace, ref.Deployment)))
	}()
	request := httptest.NewRequest(http.MethodPut, grant.URL, body)
	request.Header = http.Header{"Content-Type": {upload.ContentType}}
	var problem error
	store.Handler(func(_ http.ResponseWriter, _ *http.Request, err error) { problem = err }).ServeHTTP(httptest.NewRecorder(), request)
	if !fault.Is(problem, fault.Forbidden) {
		t.Errorf("got %v", problem)
	}
	if left := fileNames(t, dir); len(left) != 0 {
		t.Errorf("it leaves %v", left)
	}
}

// TestOpenErasesHalves opens a directory in which a server died while it received a tarball.
func TestOpenErasesHalves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check.Must(t, os.WriteFile(filepath.Join(dir, ".receiving-1"), []byte("half"), 0o600))
	open(t, dir, time.Now)
	if left := fileNames(t, dir); len(left) != 0 {
		t.Errorf("it leaves %v", left)
	}
}

func fileNames(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, path)
		}
		return err
	})
	check.Must(t, err)
	return names
}

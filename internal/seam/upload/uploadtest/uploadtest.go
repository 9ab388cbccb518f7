// Package uploadtest is the conformance suite of package upload.
package uploadtest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/upload"
)

// Store is a store under test, with a method that reads its tarballs where they are built.
type Store interface {
	upload.Store
	upload.Opener
}

// Run proves that the store that open makes, and the address of its server, keep the promises
// of package upload.
func Run(t *testing.T, open func(t *testing.T) (store Store, base string)) {
	for name, promise := range map[string]func(fixture){
		"what is uploaded can be read":           uploads,
		"what was uploaded is never replaced":    onlyOnce,
		"nothing uploaded is missing":            missing,
		"what is kept stays, the rest is erased": prunes,
		"the whole of a deployment is erased":    erases,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, base := open(t)
			promise(fixture{t, store, base})
		})
	}
}

type fixture struct {
	*testing.T
	store Store
	base  string
}

// NewRef names an upload of a new deployment.
func NewRef() upload.Ref {
	now := time.Now()
	return upload.Ref{Workspace: id.New(now), Deployment: id.New(now), Upload: id.New(now)}
}

func (f fixture) grant(ref upload.Ref) upload.Grant {
	f.Helper()
	grant, err := f.store.Grant(f.Context(), ref, f.base)
	if err != nil {
		f.Fatal(err)
	}
	return grant
}

// put sends a text and returns the status.
func (f fixture) put(grant upload.Grant, text string) int {
	f.Helper()
	return Put(f.T, grant.URL, grant.Headers, strings.NewReader(text))
}

// Put sends a body and returns the status.
func Put(t *testing.T, url string, headers map[string]string, body io.Reader) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

func (f fixture) upload(ref upload.Ref, text string) {
	f.Helper()
	if status := f.put(f.grant(ref), text); status != http.StatusOK {
		f.Fatalf("the upload ends with status %d", status)
	}
}

// want checks the stored text, "" if no tarball is stored.
func (f fixture) want(ref upload.Ref, text string) {
	f.Helper()
	got, err := read(f.Context(), f.store, ref)
	if text == "" && !errors.Is(err, upload.ErrMissing) || text != "" && (err != nil || got != text) {
		f.Errorf("%s is %q, %v; want %q", ref.Path(), got, err, text)
	}
}

func read(ctx context.Context, from upload.Opener, ref upload.Ref) (string, error) {
	opened, err := from.Open(ctx, ref)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(opened)
	return string(text), errors.Join(err, opened.Close())
}

func uploads(f fixture) {
	ref := NewRef()
	grant := f.grant(ref)
	if grant.Headers["Content-Type"] != upload.ContentType {
		f.Errorf("it is to be sent with %v", grant.Headers)
	}
	f.upload(ref, "a tarball")
	f.want(ref, "a tarball")
	other := NewRef()
	f.upload(other, "another")
	f.want(ref, "a tarball")
}

func onlyOnce(f fixture) {
	ref := NewRef()
	f.upload(ref, "first")
	if status := f.put(f.grant(ref), "second"); status < 400 || status >= 500 {
		f.Errorf("another upload ends with status %d", status)
	}
	f.want(ref, "first")
}

func missing(f fixture) {
	ref := NewRef()
	f.grant(ref)
	f.want(ref, "")
}

func prunes(f fixture) {
	first := NewRef()
	second, elsewhere := first, first
	second.Upload = NewRef().Upload
	elsewhere.Deployment = NewRef().Deployment
	for _, ref := range []upload.Ref{first, second, elsewhere} {
		f.upload(ref, ref.Path())
	}
	late := first
	late.Upload = NewRef().Upload
	granted := f.grant(late)
	for range 2 {
		err := upload.Prune(f.Context(), f.store, first.Workspace, first.Deployment, func(ref upload.Ref) bool { return ref == second })
		if err != nil {
			f.Fatal(err)
		}
		f.want(first, "")
		f.want(second, second.Path())
		f.want(elsewhere, elsewhere.Path())
	}
	if err := upload.Prune(f.Context(), f.store, first.Workspace, first.Deployment, func(upload.Ref) bool { return false }); err != nil {
		f.Fatal(err)
	}
	f.want(second, "")
	if status := f.put(granted, "late"); status != http.StatusOK {
		f.Errorf("an upload to a deployment that has none left ends with status %d", status)
	}
	f.want(late, "late")
}

func erases(f fixture) {
	ref := NewRef()
	f.upload(ref, "text")
	for range 2 {
		if err := f.store.Erase(f.Context(), ref.Workspace, ref.Deployment); err != nil {
			f.Fatal(err)
		}
		f.want(ref, "")
	}
	f.upload(ref, "anew")
	f.want(ref, "anew")
}

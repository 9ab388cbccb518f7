// Package files keeps uploads in a directory of one machine, and takes them over HTTP.
//
// A client needs no API key for an upload: the address that Grant returns is signed, and the
// signature authorizes the request. It is good for a PUT of one object that does not exist
// yet, until it expires.
package files

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/upload"
)

// Route is the pattern of requests for the Handler.
const Route = "PUT " + prefix + "{workspace}/{deployment}/{object}"

const (
	prefix = "/uploads/"
	// purpose is the purpose of the signatures of addresses.
	purpose = "upload address"
	// halves begins the names of files that are being received.
	halves = ".receiving-"

	paramExpires   = "expires"
	paramSignature = "signature"
)

// Store implements upload.Store.
type Store struct {
	root   *os.Root
	hasher secret.Hasher
	now    clock.Clock
	room   func(workspace string) error

	mu sync.Mutex
	// receiving counts the bytes that may still arrive, by workspace.
	receiving map[string]int64
}

var _ upload.Store = (*Store)(nil)

// Open opens the store in a directory, which it creates if there is none. No other process may
// use the directory: tarballs that an earlier process has received only in part are erased.
func Open(dir string, hasher secret.Hasher, now clock.Clock) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open uploads: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, halves+"*"))
	for _, half := range left {
		err = errors.Join(err, os.Remove(half))
	}
	if err != nil {
		return nil, fmt.Errorf("open uploads: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open uploads: %w", err)
	}
	return &Store{root: root, hasher: hasher, now: now, receiving: map[string]int64{}}, nil
}

// Bound makes the store refuse a tarball for which room returns an error. When room is called, Size
// already counts the tarball that is being received.
func (s *Store) Bound(room func(workspace string) error) { s.room = room }

// Size returns how many bytes the tarballs of a workspace take, with the tarballs that are
// being received.
func (s *Store) Size(workspace string) int64 {
	s.mu.Lock()
	receiving := s.receiving[workspace]
	s.mu.Unlock()
	return receiving + disk.Taken(filepath.Join(s.root.Name(), workspace), math.MaxInt64)
}

// reserve counts the bytes that a request may bring, for as long as it is received, and asks
// whether there is room for them.
func (s *Store) reserve(workspace string, size int64) (free func(), err error) {
	if size < 0 {
		size = upload.MaxSize
	}
	add := func(n int64) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.receiving[workspace] += n; s.receiving[workspace] == 0 {
			delete(s.receiving, workspace)
		}
	}
	add(size)
	free = func() { add(-size) }
	if s.room == nil {
		return free, nil
	}
	if err := s.room(workspace); err != nil {
		free()
		return nil, err
	}
	return free, nil
}

// Close closes the directory.
func (s *Store) Close() error { return s.root.Close() }

// Grant implements upload.Store. No tarball is taken without the directory that it makes.
func (s *Store) Grant(_ context.Context, ref upload.Ref, base string) (upload.Grant, error) {
	if err := s.root.MkdirAll(dirOf(ref.Workspace, ref.Deployment), 0o700); err != nil {
		return upload.Grant{}, err
	}
	expires := strconv.FormatInt(s.now().Add(upload.Lifetime).Unix(), 10)
	query := url.Values{paramExpires: {expires}, paramSignature: {s.sign(ref, expires)}}
	return upload.Grant{URL: base + prefix + ref.Path() + "?" + query.Encode(), Headers: map[string]string{"Content-Type": upload.ContentType}}, nil
}

func (s *Store) sign(ref upload.Ref, expires string) string {
	return hex.EncodeToString(s.hasher.MAC(purpose, []byte(ref.Path()+"\n"+expires)))
}

var (
	errAddress = fault.New(fault.Forbidden, "This address takes no uploads, or it has expired. Ask for another upload-url.")
	errTaken   = fault.New(fault.Conflict, "Something was uploaded to this address already. Ask for another upload-url.")
	errSize    = fault.New(fault.TooLarge, "The body has more than %d bytes.", upload.MaxSize)
)

// Handler takes uploads. It passes the fault of a wrong request to fail, which answers it.
func (s *Store) Handler(fail func(http.ResponseWriter, *http.Request, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.receive(w, r); err != nil {
			fail(w, r, err)
		}
	})
}

func (s *Store) receive(w http.ResponseWriter, r *http.Request) error {
	ref, err := s.granted(r)
	if err != nil {
		return err
	}
	inbound.Known(r.Context(), ref.Workspace)
	if r.Header.Get("Content-Type") != upload.ContentType {
		return fault.New(fault.UnsupportedMediaType, "The Content-Type must be %s.", upload.ContentType)
	}
	if r.ContentLength > upload.MaxSize {
		return errSize
	}
	free, err := s.reserve(ref.Workspace, r.ContentLength)
	if err != nil {
		return err
	}
	defer free()
	err = s.put(ref, http.MaxBytesReader(w, r.Body, upload.MaxSize))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return errSize
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return errTaken
	case errors.Is(err, fs.ErrNotExist):
		return errAddress // the deployment was erased after the grant
	}
	return err
}

// granted reads the address of a request.
func (s *Store) granted(r *http.Request) (upload.Ref, error) {
	query := r.URL.Query()
	expires := query.Get(paramExpires)
	ref, ok := upload.Parse(strings.TrimPrefix(r.URL.Path, prefix))
	until, err := strconv.ParseInt(expires, 10, 64)
	if !ok || err != nil || subtle.ConstantTimeCompare([]byte(s.sign(ref, expires)), []byte(query.Get(paramSignature))) != 1 || s.now().Unix() > until {
		return upload.Ref{}, errAddress
	}
	return ref, nil
}

// put writes a tarball completely and durably, or not at all. An existing tarball stays as it
// is: a revision may have been built from it.
func (s *Store) put(ref upload.Ref, body io.Reader) (err error) {
	name := filepath.FromSlash(ref.Path())
	if _, err := s.root.Stat(name); err == nil {
		return fs.ErrExist
	}
	if _, err := s.root.Stat(filepath.Dir(name)); err != nil {
		return err
	}
	file, err := os.CreateTemp(s.root.Name(), halves)
	if err != nil {
		return err
	}
	half := filepath.Base(file.Name())
	defer func() { err = errors.Join(err, s.root.Remove(half)) }()
	_, err = io.Copy(file, body)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return s.root.Link(half, name) // which does not replace a file that came first
}

// Open returns a tarball, or upload.ErrMissing when there is no such tarball.
func (s *Store) Open(_ context.Context, ref upload.Ref) (io.ReadCloser, error) {
	file, err := s.root.Open(filepath.FromSlash(ref.Path()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, upload.ErrMissing
	}
	return file, err
}

// List implements upload.Store.
func (s *Store) List(_ context.Context, workspace, deployment string) ([]upload.Ref, error) {
	entries, err := fs.ReadDir(s.root.FS(), path.Clean(upload.Of(workspace, deployment)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var refs []upload.Ref
	for _, entry := range entries {
		if ref, ok := upload.Parse(upload.Of(workspace, deployment) + entry.Name()); ok {
			refs = append(refs, ref)
		}
	}
	return refs, err
}

// dirOf is the directory of a deployment's tarballs, which is there until the deployment is erased.
func dirOf(workspace, deployment string) string {
	return filepath.FromSlash(path.Clean(upload.Of(workspace, deployment)))
}

// Remove implements upload.Store.
func (s *Store) Remove(_ context.Context, _, _ string, refs []upload.Ref) error {
	var failures []error
	for _, ref := range refs {
		if err := s.root.Remove(filepath.FromSlash(ref.Path())); !errors.Is(err, fs.ErrNotExist) {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// Erase implements upload.Store. Later tarballs are refused.
func (s *Store) Erase(_ context.Context, workspace, deployment string) error {
	if err := s.root.RemoveAll(dirOf(workspace, deployment)); err != nil {
		return fmt.Errorf("erase uploads of deployment %s: %w", deployment, err)
	}
	return nil
}

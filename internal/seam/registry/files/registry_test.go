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
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/registry"
	"github.com/slipway-run/slipway/internal/seam/registry/files"
	"github.com/slipway-run/slipway/internal/seam/registry/registrytest"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// machine is a registry that is served.
type machine struct {
	*files.Registry
	dir string
	// ahead is by how many nanoseconds its clock is ahead.
	clock *fixtures.RunningClock
}

func newMachine(t *testing.T, adjust ...func(*files.Config)) machine {
	t.Helper()
	return openMachine(t, t.TempDir(), adjust...)
}

func openMachine(t *testing.T, dir string, adjust ...func(*files.Config)) machine {
	t.Helper()
	m := machine{dir: dir, clock: new(fixtures.RunningClock)}
	key := fixtures.KeyAt(t, filepath.Join(dir, "secret.key"))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.ServeHTTP(w, r) }))
	cfg := files.Config{
		Dir: filepath.Join(dir, "images"), Host: server.Listener.Addr().String(), Hasher: key,
		Now: m.clock.Now,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	for _, change := range adjust {
		change(&cfg)
	}
	var err error
	m.Registry, err = files.Open(cfg)
	check.Must(t, err)
	server.Start()
	t.Cleanup(func() {
		server.Close()
		check.Must(t, m.Close())
	})
	return m
}

func (m machine) grant(t *testing.T, ref registry.Ref) registry.Grant {
	t.Helper()
	grant, err := m.Push(t.Context(), ref)
	check.Must(t, err)
	return grant
}

func (m machine) pullGrant(t *testing.T, ref registry.Ref) registry.Grant {
	t.Helper()
	grant, err := m.Pull(t.Context(), ref)
	check.Must(t, err)
	return grant
}

// as lets a client of a registry log in with a grant.
func as(ctx context.Context, grant registry.Grant) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuth(&authn.Basic{Username: grant.Username, Password: grant.Token}), remote.WithRetryPredicate(func(error) bool { return false })}
}

func reference(t *testing.T, repository, suffix string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(repository+suffix, name.StrictValidation)
	check.Must(t, err)
	return ref
}

func newImage(t *testing.T) (image v1.Image, digest string) {
	t.Helper()
	image, err := random.Image(3000, 3)
	check.Must(t, err)
	return image, digestOf(t, image)
}

func digestOf(t *testing.T, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	hash, err := of.Digest()
	check.Must(t, err)
	return hash.String()
}

// push pushes a new image.
func (m machine) push(t *testing.T, grant registry.Grant, tag string) (digest string) {
	t.Helper()
	image, digest := newImage(t)
	check.Must(t, remote.Write(reference(t, grant.Repository, ":"+tag), image, as(t.Context(), grant)...))
	return digest
}

// pull reads an image whole, and checks each digest.
func (m machine) pull(t *testing.T, grant registry.Grant, suffix string) error {
	t.Helper()
	image, err := remote.Image(reference(t, grant.Repository, suffix), as(t.Context(), grant)...)
	if err != nil {
		return err
	}
	return validate.Image(image)
}

func (m machine) has(t *testing.T, ref registry.Ref, digest string) bool {
	t.Helper()
	err := m.pull(t, m.pullGrant(t, ref), "@"+digest)
	if failed, ok := errors.AsType[*transport.Error](err); ok && failed.StatusCode == http.StatusNotFound {
		return false
	}
	check.Must(t, err)
	return true
}

func (m machine) age(*testing.T) { m.clock.Pass(25 * time.Hour) }

func TestConformance(t *testing.T) {
	t.Parallel()
	registrytest.Run(t, func(t *testing.T) registrytest.World {
		m := newMachine(t)
		// Files are as old as the machine's clock says. The registry's clock is ahead of it.
		return registrytest.World{Registry: m, Push: m.push, Has: m.has, Age: m.age}
	})
}

// status is the status of the answer to a refused request.
func status(err error) int {
	if failed, ok := errors.AsType[*transport.Error](err); ok {
		return failed.StatusCode
	}
	return 0
}

// TestTokensReachNoFurther tries to read and write with tokens that are for another purpose,
// or are no longer valid.
func TestTokensReachNoFurther(t *testing.T) {
	t.Parallel()
	m, ref := newMachine(t), registrytest.NewRef()
	good := m.grant(t, ref)
	m.push(t, good, "v1")
	neighbour := registry.Ref{Workspace: ref.Workspace, Deployment: registrytest.NewRef().Deployment}
	sameName := registry.Ref{Workspace: registrytest.NewRef().Workspace, Deployment: ref.Deployment}
	other := newMachine(t)
	swap := func(from, to string) string { return strings.Replace(good.Token, from, to, 1) }
	for what, c := range map[string]struct {
		token      string
		read, push int
	}{
		"no token":                       {"", http.StatusUnauthorized, http.StatusUnauthorized},
		"no token at all":                {"push", http.StatusUnauthorized, http.StatusUnauthorized},
		"a neighbour's token":            {m.grant(t, neighbour).Token, http.StatusForbidden, http.StatusForbidden},
		"another workspace's token":      {m.grant(t, sameName).Token, http.StatusForbidden, http.StatusForbidden},
		"another server's token":         {other.grant(t, ref).Token, http.StatusUnauthorized, http.StatusUnauthorized},
		"a token to pull":                {m.pullGrant(t, ref).Token, 0, http.StatusForbidden},
		"one to pull made one to push":   {strings.Replace(m.pullGrant(t, ref).Token, "pull", "push", 1), http.StatusUnauthorized, http.StatusUnauthorized},
		"one made good for longer":       {swap(".1", ".2"), http.StatusUnauthorized, http.StatusUnauthorized},
		"one made for another workspace": {swap(ref.Workspace, sameName.Workspace), http.StatusUnauthorized, http.StatusUnauthorized},
		"one cut short":                  {good.Token[:len(good.Token)-1], http.StatusUnauthorized, http.StatusUnauthorized},
	} {
		grant := registry.Grant{Repository: good.Repository, Username: good.Username, Token: c.token}
		if err := m.pull(t, grant, ":v1"); status(err) != c.read {
			t.Errorf("%s: a read is answered with %d, want %d: %v", what, status(err), c.read, err)
		}
		image, _ := newImage(t)
		if err := remote.Write(reference(t, good.Repository, ":v2"), image, as(t.Context(), grant)...); status(err) != c.push {
			t.Errorf("%s: a push is answered with %d, want %d: %v", what, status(err), c.push, err)
		}
	}
	check.Must(t, m.pull(t, good, ":v1"))
	m.clock.Pass(registry.TokenLife - time.Minute)
	check.Must(t, m.pull(t, good, ":v1"))
	m.clock.Pass(2 * time.Minute)
	if err := m.pull(t, good, ":v1"); status(err) != http.StatusUnauthorized {
		t.Errorf("an old token is answered with %d: %v", status(err), err)
	}
}

// TestNothingIsMountedFromOthers asks to mount a layer of another deployment.
func TestNothingIsMountedFromOthers(t *testing.T) {
	t.Parallel()
	m, ref, other := newMachine(t), registrytest.NewRef(), registrytest.NewRef()
	image, _ := newImage(t)
	theirs := m.grant(t, other)
	check.Must(t, remote.Write(reference(t, theirs.Repository, ":v1"), image, as(t.Context(), theirs)...))
	layers, err := image.Layers()
	check.Must(t, err)
	digest := digestOf(t, layers[0])
	own := m.grant(t, ref)
	path := "/v2/" + strings.TrimPrefix(own.Repository, own.Host()+"/") + "/blobs/"
	_, from, _ := strings.Cut(theirs.Repository, "/")
	if got := m.request(t, own, http.MethodPost, path+"uploads/?mount="+digest+"&from="+from, "", nil); got.status != http.StatusAccepted {
		t.Errorf("a mount is answered with %d, want an upload (202)", got.status)
	}
	if got := m.request(t, own, http.MethodHead, path+digest, "", nil); got.status != http.StatusNotFound {
		t.Errorf("the layer is there: %d", got.status)
	}
	if got := m.request(t, own, http.MethodGet, "/v2/_catalog", "", nil); got.status != http.StatusForbidden {
		t.Errorf("a list of all repositories is answered with %d", got.status)
	}
}

type answer struct {
	status int
	body   string
	header http.Header
}

// request makes one request of the protocol.
func (m machine) request(t *testing.T, grant registry.Grant, method, path, mediaType string, body io.Reader) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+grant.Host()+path, body)
	check.Must(t, err)
	request.SetBasicAuth(grant.Username, grant.Token)
	if mediaType != "" {
		request.Header.Set("Content-Type", mediaType)
	}
	got, err := http.DefaultClient.Do(request)
	check.Must(t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	check.Must(t, err)
	return answer{got.StatusCode, string(text), got.Header}
}

// TestImagesOutliveTheServer reads the images that were pushed before the registry was opened
// again.
func TestImagesOutliveTheServer(t *testing.T) {
	t.Parallel()
	before := newMachine(t)
	ref := registrytest.NewRef()
	digest := before.push(t, before.grant(t, ref), "v1")
	after := openMachine(t, before.dir)
	if !after.has(t, ref, digest) {
		t.Error("the image is gone")
	}
	check.Must(t, after.pull(t, after.pullGrant(t, ref), ":v1"))
	got := after.request(t, after.pullGrant(t, ref), http.MethodGet, "/v2/images/"+ref.Workspace+"/"+ref.Deployment+"/tags/list", "", nil)
	if got.status != http.StatusOK || !strings.Contains(got.body, `"tags":["v1"]`) {
		t.Errorf("the tags are %d %s", got.status, got.body)
	}
}

// TestImagesOfSeveralPlatforms keeps an index with all of its images, and pulls one of them.
func TestImagesOfSeveralPlatforms(t *testing.T) {
	t.Parallel()
	m, ref := newMachine(t), registrytest.NewRef()
	grant := m.grant(t, ref)
	first, firstDigest := newImage(t)
	second, secondDigest := newImage(t)
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: first}, mutate.IndexAddendum{Add: second})
	check.Must(t, remote.WriteIndex(reference(t, grant.Repository, ":v1"), index, as(t.Context(), grant)...))
	m.age(t)
	check.Must(t, m.Keep(t.Context(), ref, []string{grant.Repository + "@" + digestOf(t, index)}))
	for _, digest := range []string{firstDigest, secondDigest} {
		if !m.has(t, ref, digest) {
			t.Errorf("image %s of the index is gone", digest)
		}
	}
}

// TestNothingIsLeft looks for files when no image is kept any more, and when the repository is
// erased.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	m, ref := newMachine(t), registrytest.NewRef()
	grant := m.grant(t, ref)
	m.push(t, grant, "v1")
	path := "/v2/" + strings.TrimPrefix(grant.Repository, grant.Host()+"/") + "/blobs/uploads/"
	begun := m.request(t, grant, http.MethodPost, path, "", nil)
	if got := m.request(t, grant, http.MethodPatch, begun.header.Get("Location"), "application/octet-stream", strings.NewReader("a part")); got.status != http.StatusAccepted {
		t.Fatalf("a part is answered with %d %s", got.status, got.body)
	}
	m.age(t)
	check.Must(t, m.Keep(t.Context(), ref, nil))
	if left := m.files(t); len(left) > 0 {
		t.Errorf("these files are left: %q", left)
	}
	grant = m.grant(t, ref)
	check.Must(t, m.Erase(t.Context(), ref.Workspace, ref.Deployment))
	if left, err := os.ReadDir(filepath.Join(m.dir, "images")); err != nil || len(left) > 0 {
		t.Errorf("these directories are left: %v, %v", left, err)
	}
	if got := m.request(t, grant, http.MethodPost, path, "", nil); got.status != http.StatusNotFound {
		t.Errorf("an upload to what was erased is answered with %d %s", got.status, got.body)
	}
	if left := m.files(t); len(left) > 0 {
		t.Errorf("an upload to what was erased leaves %q", left)
	}
}

// files are all files that the registry keeps.
func (m machine) files(t *testing.T) (found []string) {
	t.Helper()
	check.Must(t, filepath.WalkDir(filepath.Join(m.dir, "images"), func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, path)
		}
		return err
	}))
	return found
}

// TestBounds sends content that is too large, and content that is not what its description
// says.
func TestBounds(t *testing.T) {
	t.Parallel()
	m, ref := newMachine(t, func(c *files.Config) { c.MaxBlob = 1000 }), registrytest.NewRef()
	grant := m.grant(t, ref)
	repository := "/v2/" + strings.TrimPrefix(grant.Repository, grant.Host()+"/")
	begin := func() string {
		return m.request(t, grant, http.MethodPost, repository+"/blobs/uploads/", "", nil).header.Get("Location")
	}
	zeros := "sha256:" + strings.Repeat("0", 64)
	large := strings.Repeat("x", 1001)
	const manifest = "application/vnd.oci.image.manifest.v1+json"
	for what, c := range map[string]struct {
		method, path, mediaType string
		body                    io.Reader
		status                  int
		says                    string
	}{
		"a layer that is too large":          {http.MethodPut, begin() + "?digest=" + zeros, "", strings.NewReader(large), http.StatusRequestEntityTooLarge, "1000 bytes"},
		"one in one request of no length":    {http.MethodPut, begin() + "?digest=" + zeros, "", io.MultiReader(strings.NewReader(large)), http.StatusRequestEntityTooLarge, "1000 bytes"},
		"one of no known length":             {http.MethodPatch, begin(), "", io.MultiReader(strings.NewReader(large)), http.StatusRequestEntityTooLarge, "1000 bytes"},
		"a layer with another digest":        {http.MethodPut, begin() + "?digest=" + zeros, "", strings.NewReader("x"), http.StatusBadRequest, "DIGEST_INVALID"},
		"an upload that never began":         {http.MethodPatch, repository + "/blobs/uploads/" + strings.Repeat("A", 26), "", strings.NewReader("x"), http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN"},
		"a manifest that is too large":       {http.MethodPut, repository + "/manifests/v1", manifest, strings.NewReader(strings.Repeat(" ", 4<<20+1)), http.StatusRequestEntityTooLarge, "4194304 bytes"},
		"a manifest that is none":            {http.MethodPut, repository + "/manifests/v1", manifest, strings.NewReader("[]"), http.StatusBadRequest, "MANIFEST_INVALID"},
		"one of another kind":                {http.MethodPut, repository + "/manifests/v1", "text/plain", strings.NewReader("{}"), http.StatusBadRequest, "MANIFEST_INVALID"},
		"one whose layers have not come":     {http.MethodPut, repository + "/manifests/v1", manifest, strings.NewReader(`{"layers":[{"digest":"` + zeros + `"}]}`), http.StatusNotFound, "MANIFEST_BLOB_UNKNOWN"},
		"one with a digest of no meaning":    {http.MethodPut, repository + "/manifests/v1", manifest, strings.NewReader(`{"layers":[{"digest":"../../secret.key"}]}`), http.StatusBadRequest, "DIGEST_INVALID"},
		"the deletion of a manifest":         {http.MethodDelete, repository + "/manifests/v1", "", nil, http.StatusBadRequest, "UNSUPPORTED"},
		"a tag that is a path":               {http.MethodGet, repository + "/manifests/..%2F..%2Fsecret", "", nil, http.StatusNotFound, ""},
		"a manifest that is not there":       {http.MethodGet, repository + "/manifests/" + zeros, "", nil, http.StatusNotFound, "MANIFEST_UNKNOWN"},
		"a layer that is not there":          {http.MethodGet, repository + "/blobs/" + zeros, "", nil, http.StatusNotFound, "BLOB_UNKNOWN"},
		"a layer by an algorithm of its own": {http.MethodGet, repository + "/blobs/sha512:" + strings.Repeat("0", 128), "", nil, http.StatusBadRequest, "DIGEST_INVALID"},
	} {
		if got := m.request(t, grant, c.method, c.path, c.mediaType, c.body); got.status != c.status || !strings.Contains(got.body, c.says) {
			t.Errorf("%s is answered with %d %s; want %d with %q", what, got.status, got.body, c.status, c.says)
		}
	}
}

// TestABlobThatIsRefusedLeavesNothing when its client sends it in one request, and so cannot send
// its end again.
func TestABlobThatIsRefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	m, ref := newMachine(t, func(c *files.Config) { c.MaxBlob = 1000 }), registrytest.NewRef()
	grant := m.grant(t, ref)
	path := "/v2/" + strings.TrimPrefix(grant.Repository, grant.Host()+"/") + "/blobs/uploads/?digest="
	zeros := "sha256:" + strings.Repeat("0", 64)
	for what, c := range map[string]struct {
		digest, body string
		status       int
	}{
		"one with another digest":  {zeros, "x", http.StatusBadRequest},
		"one by another algorithm": {"sha512:" + strings.Repeat("0", 128), "x", http.StatusBadRequest},
		"one that is too large":    {zeros, strings.Repeat("x", 1001), http.StatusRequestEntityTooLarge},
	} {
		if got := m.request(t, grant, http.MethodPost, path+c.digest, "", strings.NewReader(c.body)); got.status != c.status {
			t.Errorf("%s is answered with %d %s; want %d", what, got.status, got.body, c.status)
		}
		if left := m.files(t); len(left) > 0 {
			t.Errorf("%s leaves %q", what, left)
		}
	}
}

// TestARepositoryIsFull pushes until the repository refuses more, and again after an image was
// removed.
func TestARepositoryIsFull(t *testing.T) {
	t.Parallel()
	m, ref := newMachine(t, func(c *files.Config) { c.MaxRepository = 15000 }), registrytest.NewRef()
	grant := m.grant(t, ref)
	kept := m.push(t, grant, "v1") // three layers of 3000 bytes
	image, _ := newImage(t)
	err := remote.Write(reference(t, grant.Repository, ":v2"), image, as(t.Context(), grant)...)
	if status(err) != http.StatusForbidden || !strings.Contains(err.Error(), "15000 bytes") {
		t.Fatalf("a push to a full repository is answered with %v", err)
	}
	m.age(t)
	check.Must(t, m.Keep(t.Context(), ref, nil))
	if m.has(t, ref, kept) {
		t.Error("the image is kept")
	}
	m.push(t, m.grant(t, ref), "v2")
}

// TestAWorkspaceIsFull has a workspace whose images take as much as all its files may.
func TestAWorkspaceIsFull(t *testing.T) {
	t.Parallel()
	var m machine
	var bounds atomic.Bool
	ref := registrytest.NewRef()
	m = newMachine(t, func(c *files.Config) {
		c.Room = func(workspace string) error {
			if bounds.Load() && workspace == ref.Workspace && m.Size(workspace) >= 9000 {
				return fault.New(fault.Forbidden, "the quota is used up")
			}
			return nil
		}
	})
	grant := m.grant(t, ref)
	m.push(t, grant, "v1") // three layers of 3000 bytes
	bounds.Store(true)
	image, _ := newImage(t)
	err := remote.Write(reference(t, grant.Repository, ":v2"), image, as(t.Context(), grant)...)
	if status(err) != http.StatusForbidden || !strings.Contains(err.Error(), "the quota is used up") {
		t.Fatalf("a push to a full workspace is answered with %v", err)
	}
	m.push(t, m.grant(t, registrytest.NewRef()), "v1")
	check.Must(t, m.Erase(t.Context(), ref.Workspace, ref.Deployment))
	if size := m.Size(ref.Workspace); size != 0 {
		t.Errorf("%d bytes are left", size)
	}
}

// TestAnUploadGoesOn sends a blob in parts, one of which begins at a wrong place, and reads a
// part of it.
func TestAnUploadGoesOn(t *testing.T) {
	t.Parallel()
	m, ref := newMachine(t), registrytest.NewRef()
	grant := m.grant(t, ref)
	repository := "/v2/" + strings.TrimPrefix(grant.Repository, grant.Host()+"/")
	at := m.request(t, grant, http.MethodPost, repository+"/blobs/uploads/", "", nil).header.Get("Location")
	part := func(text, contentRange string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://"+grant.Host()+at, strings.NewReader(text))
		check.Must(t, err)
		request.SetBasicAuth(grant.Username, grant.Token)
		request.Header.Set("Content-Range", contentRange)
		got, err := http.DefaultClient.Do(request)
		check.Must(t, err)
		check.Must(t, got.Body.Close())
		return got.StatusCode
	}
	for _, c := range []struct {
		text, contentRange string
		status             int
	}{{"abc", "0-2", http.StatusAccepted}, {"xyz", "0-2", http.StatusRequestedRangeNotSatisfiable}, {"def", "3-5", http.StatusAccepted}} {
		if got := part(c.text, c.contentRange); got != c.status {
			t.Errorf("%s at %s is answered with %d, want %d", c.text, c.contentRange, got, c.status)
		}
	}
	hash, _, err := v1.SHA256(strings.NewReader("abcdef"))
	check.Must(t, err)
	if got := m.request(t, grant, http.MethodPut, at+"?digest="+hash.String(), "", nil); got.status != http.StatusCreated {
		t.Fatalf("the end is answered with %d %s", got.status, got.body)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+grant.Host()+repository+"/blobs/"+hash.String(), nil)
	check.Must(t, err)
	request.SetBasicAuth(grant.Username, grant.Token)
	request.Header.Set("Range", "bytes=2-3")
	got, err := http.DefaultClient.Do(request)
	check.Must(t, err)
	defer got.Body.Close()
	if text, err := io.ReadAll(got.Body); err != nil || string(text) != "cd" || got.StatusCode != http.StatusPartialContent {
		t.Errorf("a part is %d %q, %v", got.StatusCode, text, err)
	}
}

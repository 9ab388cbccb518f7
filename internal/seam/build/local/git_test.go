package local_test

import (
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/test/check"
)

const (
	username = "ada"
	password = "p%20ss:word's"
)

// gitHandler serves the repositories under dir.
func gitHandler(t *testing.T, dir string) http.Handler {
	t.Helper()
	libexec, err := exec.Command(buildtest.Git, "--exec-path").Output()
	check.Must(t, err)
	return &cgi.Handler{
		Stderr: io.Discard,
		Path:   filepath.Join(strings.TrimSpace(string(libexec)), "git-http-backend"),
		Env:    []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"},
	}
}

// serveGit serves the repositories under dir over HTTP. If private is true, it asks for the
// credentials.
func serveGit(t *testing.T, dir string, private bool) (url string) {
	t.Helper()
	backend := gitHandler(t, dir)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); private && (user != username || pass != password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestRefs(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")})
	tagged := r.Git("rev-parse", "HEAD")
	r.Git("tag", "light")
	r.Git("tag", "-a", "-m", "release", "annotated")
	r.Git("branch", "feature/x")
	r.Git("branch", "deep/refs/heads/main")
	head := r.Commit(nil)
	r.Git("tag", "tree", "HEAD^{tree}")
	for ref, want := range map[string]string{
		"main": head, "refs/heads/main": head, "feature/x": tagged, "refs/tags/light": tagged, "refs/tags/annotated": tagged,
	} {
		spec := buildtest.NewSpec(r.URL())
		spec.Ref = ref
		got := m.build(t, spec)
		if got.CommitSHA != want {
			t.Errorf("%s: commit %s, want %s", ref, got.CommitSHA, want)
		}
		clone := buildtest.OpenRepo(t, got.Artifact.Dir)
		if history := clone.Git("rev-list", "--count", "HEAD"); history != "1" {
			t.Errorf("%s: %s commits were cloned, want 1", ref, history)
		}
		if unpacked := clone.Git("count-objects"); !strings.HasPrefix(unpacked, "0 objects") {
			t.Errorf("%s: the pack was not kept: there are %s", ref, unpacked)
		}
	}
	for ref, words := range map[string]string{
		"nope":            `has no branch named "nope"`,
		"light":           `has no branch named "light"`,
		"refs/tags/nope":  `has no tag named "nope"`,
		"refs/heads/*":    `has no branch named "*"`,
		"heads/main":      `has no branch named "heads/main"`,
		"--upload-pack=x": `has no branch named "--upload-pack=x"`,
		"refs/tags/tree":  "does not name a commit",
	} {
		spec := buildtest.NewSpec(r.URL())
		spec.Ref = ref
		m.wantFailure(t, spec, build.ReasonRefNotFound, words)
	}
}

// TestACommitIsBuiltThatNoRefNames builds a commit whose branch was moved away from it and is
// gone.
func TestACommitIsBuiltThatNoRefNames(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")})
	want := r.Git("rev-parse", "HEAD")
	r.Commit(nil)
	r.Git("branch", "-m", "main", "other")
	for _, url := range []string{r.URL(), serveGit(t, filepath.Dir(r.Dir), false) + "/repo.git"} {
		spec := buildtest.NewSpec(url)
		spec.Commit = want
		if got := m.build(t, spec); got.CommitSHA != want {
			t.Errorf("built %s, want %s", got.CommitSHA, want)
		}
		spec = buildtest.NewSpec(url)
		spec.Commit = strings.Repeat("1", 40)
		m.wantFailure(t, spec, build.ReasonRefNotFound, "does not give out the commit "+spec.Commit)
	}
}

func TestAttackAddressesOfRepositories(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")})
	for _, url := range []string{r.URL(), r.Dir, serveGit(t, filepath.Dir(r.Dir), false) + "/repo.git"} {
		if got := m.build(t, buildtest.NewSpec(url)); got.CommitSHA != r.Git("rev-parse", "HEAD") {
			t.Errorf("%s: commit %s", url, got.CommitSHA)
		}
	}
}

func TestRepositoryCannotBeReached(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")})
	public, private := serveGit(t, filepath.Dir(r.Dir), false), serveGit(t, filepath.Dir(r.Dir), true)
	for name, c := range map[string]struct {
		url, credentials string
		words            []string
	}{
		"no such directory":   {"file:///no/such/repo", "", []string{"file:///no/such/repo", "does not exist", "no credentials"}},
		"no such repository":  {public + "/nope.git", "", []string{"/nope.git", "does not exist", "not found"}},
		"nobody listens":      {"http://127.0.0.1:1/repo.git", "", []string{"cannot be reached", "127.0.0.1"}},
		"no such host":        {"https://nowhere.invalid/repo.git", "", []string{"nowhere.invalid"}},
		"no credentials":      {private + "/repo.git", "", []string{"no credentials are known"}},
		"wrong credentials":   {private + "/repo.git", "ada:open-sesame", []string{"refused the credentials", "Authentication failed"}},
		"ssh without anybody": {"ssh://git@127.0.0.1:1/repo.git", "", []string{"ssh://git@127.0.0.1:1/repo.git"}},
		"an option":           {"--upload-pack=touch /tmp/x", "", []string{"none that git can clone from"}},
		"a remote helper":     {"ext::sh -c true", "", []string{"none that git can clone from"}},
		"another scheme":      {"ftp://127.0.0.1/repo.git", "", []string{"none that git can clone from"}},
		"a relative path":     {"repo.git", "", []string{"none that git can clone from"}},
		"not a URL":           {"https://ada:open-sesame@%zz/", "", []string{"none that git can clone from"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := buildtest.NewSpec(c.url)
			spec.Credentials = c.credentials
			got := m.wantFailure(t, spec, build.ReasonRepoUnreachable, c.words...)
			if strings.Contains(got.Message, "open-sesame") {
				t.Errorf("message %q has the password", got.Message)
			}
		})
	}
}

func TestRepositoryDoesNotAnswer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, silent.Close()) })
	m := newMachine(t, func(c *local.Config) { c.ReachLimit = 300 * time.Millisecond })
	for _, scheme := range []string{"http", "https", "ssh"} {
		m.wantFailure(t, buildtest.NewSpec(scheme+"://"+silent.Addr().String()+"/repo.git"), build.ReasonRepoUnreachable, "did not answer within 300ms")
	}
}

func TestCredentialsStaySecret(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("env; cat .git/config")})
	url := serveGit(t, filepath.Dir(r.Dir), true) + "/repo.git"
	given := buildtest.NewSpec(url)
	given.Credentials = username + ":" + password
	inURL := buildtest.NewSpec(strings.Replace(url, "://", "://"+username+":p%2520ss%3Aword's@", 1))
	for _, spec := range []build.Spec{given, inURL} {
		got := m.build(t, spec)
		if got.CommitSHA == "" {
			t.Error("there is no commit")
		}
		if log := m.log(t, spec); strings.Contains(log, "word's") || strings.Contains(log, "***") || !strings.Contains(log, url) {
			t.Errorf("log of a build that prints all it knows:\n%s", log)
		}
		wantNowhere(t, m.cfg.Dir, "word's")
		calls, err := os.ReadFile(filepath.Join(m.cfg.Dir, "revisions", spec.Revision, gitCalls))
		check.Must(t, err)
		if !strings.Contains(string(calls), "ls-remote --exit-code -- "+url) {
			t.Errorf("git was called as:\n%s", calls)
		}
	}
}

// TestABuildThatWaitsGetsItsCredentialsAnew lets the credentials expire that the build was
// started with.
func TestABuildThatWaitsGetsItsCredentialsAnew(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(c *local.Config) { c.Places = 1 })
	gate, open := newGate(t)
	first := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("read go <" + gate)}).URL())
	m.start(t, first)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")})
	spec := buildtest.NewSpec(serveGit(t, filepath.Dir(r.Dir), true) + "/repo.git")
	spec.Workspace = first.Workspace // a build of another workspace would not wait
	for _, credentials := range []string{username + ":expired", username + ":" + password} {
		spec.Credentials = credentials
		m.start(t, spec)
	}
	open()
	if got := m.await(t, spec); got.State != build.Succeeded {
		t.Errorf("build is %s %s %q", got.State, got.Reason, got.Message)
	}
}

// wantNowhere checks that no file under dir has the text.
func wantNowhere(t *testing.T, dir, text string) {
	t.Helper()
	check.Must(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text) {
			t.Errorf("%s has the password", path)
		}
		return err
	}))
}

func TestSubmodules(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	inner := buildtest.NewRepo(t, map[string]string{"data.txt": "inner"})
	outer := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("cat lib/data.txt")})
	outer.Git("submodule", "add", "-q", inner.URL(), "lib")
	inner.Commit(map[string]string{"data.txt": "newer"})
	outer.Commit(nil)

	spec := buildtest.NewSpec(outer.URL())
	m.build(t, spec)
	if log := m.log(t, spec); !strings.Contains(log, "\ninner") {
		t.Errorf("log %q has not the submodule's file at its commit", log)
	}

	// A repository on the network cannot make the server read the server's own files.
	url := serveGit(t, filepath.Dir(outer.Dir), false) + "/repo.git"
	m.wantFailure(t, buildtest.NewSpec(url), build.ReasonRepoUnreachable, "a submodule", "transport 'file' not allowed")
}

// TestFilesInGitLFS builds a commit with a pointer to such a file, and commits in which a file has
// the attribute only, or the text only.
func TestFilesInGitLFS(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("0", 64) + "\nsize 12345\n"
	r := buildtest.NewRepo(t, map[string]string{
		"framework.json": buildtest.Framework("true"), "docs/lfs.txt": pointer, "data/.gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "data/own.bin": "the content\n",
	})
	m.build(t, buildtest.NewSpec(r.URL()))
	r.Commit(map[string]string{"data/größe.bin": pointer})
	m.wantFailure(t, buildtest.NewSpec(r.URL()), build.ReasonSourceInvalid, `the file "data/größe.bin" is in Git LFS`)
}

func TestSubmoduleOfAnotherHostGetsNoCredentials(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	inner := buildtest.NewRepo(t, map[string]string{"data.txt": "inner"})
	outer := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")})
	outer.Git("submodule", "add", "-q", inner.URL(), "lib")
	other := serveGit(t, filepath.Dir(inner.Dir), true)
	outer.Git("config", "-f", ".gitmodules", "submodule.lib.url", other+"/repo.git")
	outer.Commit(nil)
	spec := buildtest.NewSpec(serveGit(t, filepath.Dir(outer.Dir), true) + "/repo.git")
	spec.Credentials = username + ":" + password
	m.wantFailure(t, spec, build.ReasonRepoUnreachable, "a submodule", "could not read Username")
}

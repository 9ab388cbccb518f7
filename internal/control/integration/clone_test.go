package integration_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/integration/githubtest"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// fullTable is a table that takes no puts.
type fullTable struct{ table.Table }

func (fullTable) Transact(context.Context, ...table.Write) error { return disk.ErrFull }

// TestACloneDoesWithoutTheNoteOfItsName when the disk is full: only a later push of a renamed
// repository needs the note.
func TestACloneDoesWithoutTheNoteOfItsName(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	i := f.install(t, workspace)
	config := f.config
	config.Table = fullTable{f.table}
	s, err := integration.New(config)
	check.Must(t, err)
	if got, err := s.CloneCredentials(t.Context(), workspace, i.Integration, f.repoURL("acme/agent")); err != nil || !strings.HasPrefix(got, "x-access-token:") {
		t.Errorf("got %q (%v), want credentials", got, err)
	}
}

// TestAPrivateRepositoryIsCloned clones over https from a server that requires the token that
// the same server has made.
func TestAPrivateRepositoryIsCloned(t *testing.T) {
	f := setUp(t)
	t.Setenv("GIT_SSL_CAINFO", f.github.Trust(t))
	i := f.install(t, workspace)
	commit := f.private(t, "acme/agent")
	f.private(t, "acme/secret")

	dir := t.TempDir()
	logs, err := files.Open(filepath.Join(dir, "logs"), f.clock.Now)
	check.Must(t, err)
	builder, err := local.New(local.Config{Dir: filepath.Join(dir, "builds"), Logs: logs, Log: slog.Default(), Networks: outbound.Everywhere})
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, builder.Close()) })

	clone := func(name, credentials string) build.Result {
		t.Helper()
		spec := buildtest.NewSpec(f.repoURL(name))
		spec.Credentials = credentials
		check.Must(t, builder.Start(t.Context(), spec))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got, err := builder.Await(ctx, spec.Revision)
		check.Must(t, err)
		return got
	}
	credentials, err := f.CloneCredentials(t.Context(), workspace, i.Integration, f.repoURL("acme/agent"))
	check.Must(t, err)
	if got := clone("acme/agent", credentials); got.State != build.Succeeded || got.CommitSHA != commit {
		t.Errorf("with the credentials: %s %s %s", got.State, got.Reason, got.Message)
	}
	user, token, _ := strings.Cut(credentials, ":")
	host := strings.TrimPrefix(f.github.URL, "https://")
	plain, err := f.CreateCredential(t.Context(), integration.NewCredential{Workspace: workspace, Host: host, User: user, Token: token})
	check.Must(t, err)
	same, err := f.CloneCredentials(t.Context(), workspace, plain.Integration, f.repoURL("acme/agent"))
	check.Must(t, err)
	if got := clone("acme/agent", same); got.State != build.Succeeded {
		t.Errorf("with credentials for the host: %s %s %s", got.State, got.Reason, got.Message)
	}
	for name, c := range map[string][2]string{
		"without credentials":         {"acme/agent", ""},
		"with a token of another":     {"acme/secret", credentials},
		"with a token that was never": {"acme/agent", "x-access-token:ghs_guess"},
	} {
		if got := clone(c[0], c[1]); got.State != build.Failed || got.Reason != build.ReasonRepoUnreachable {
			t.Errorf("%s: %s %s %s", name, got.State, got.Reason, got.Message)
		}
	}
	f.github.Install(githubtest.Installation{ID: 77, Account: "acme", Suspended: true})
	if got := clone("acme/agent", credentials); got.State != build.Failed {
		t.Errorf("with the token of a suspended installation: %s", got.State)
	}

	check.Must(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), token) {
			t.Errorf("%s holds the token", path)
		}
		return err
	}))
	f.assertNoSecrets(t, nil)
}

// private makes a repository on the server, and returns its commit.
func (f *fixture) private(t *testing.T, name string) (commit string) {
	t.Helper()
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")})
	bare := filepath.Join(f.github.Repos, name+".git")
	if out, err := exec.CommandContext(t.Context(), buildtest.Git, "clone", "-q", "--bare", r.Dir, bare).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r.Git("rev-parse", "HEAD")
}

func TestARepositoryFitsItsIntegration(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	hub := f.install(t, workspace).Integration
	host := f.credential(t, workspace, "git.example.com:8443").Integration
	plain := f.credential(t, workspace, "git.example.com").Integration
	for name, c := range map[string]struct{ workspace, integration, url, want string }{
		"GitHub":                          {workspace, hub, f.github.URL + "/acme/agent", ""},
		"GitHub, whatever the repository": {workspace, hub, f.github.URL + "/initech/other.git", ""},
		"a host":                          {workspace, host, "https://git.example.com:8443/group/sub/agent.git", ""},
		"a host in capitals":              {workspace, host, "https://GIT.example.com:8443/agent", ""},
		"https's own port":                {workspace, plain, "https://git.example.com:443/agent", ""},
		"not an id":                       {workspace, "x#y", f.github.URL + "/acme/agent", "not found"},
		"an unknown id":                   {workspace, unknown, f.github.URL + "/acme/agent", "not found"},
		"of another workspace":            {other, hub, f.github.URL + "/acme/agent", "not found"},
		"a host of another workspace":     {other, plain, "https://git.example.com/agent", "not found"},
		"another host than GitHub":        {workspace, hub, "https://ada:hush@git.example.com/acme/agent", "git.example.com"},
		"another port":                    {workspace, plain, "https://git.example.com:8443/agent", "are for git.example.com."},
		"another host":                    {workspace, plain, "https://evil.example.com/agent", "evil.example.com"},
		"a host that looks like it":       {workspace, plain, "https://git.example.com.evil.com/agent", "evil.com"},
		"http":                            {workspace, plain, "http://ada:hush@git.example.com/agent", "https URL"},
		"ssh":                             {workspace, plain, "ssh://git@git.example.com/agent", "https URL"},
		"ssh's short form":                {workspace, hub, "git@github.com:acme/agent.git", "https URL"},
		"a file":                          {workspace, plain, "file:///etc", "https URL"},
		"not a URL":                       {workspace, plain, "https://ada:hush@%zz/", "https URL"},
		"no repository":                   {workspace, hub, f.github.URL + "/acme", "owner/name"},
		"a way up":                        {workspace, hub, f.github.URL + "/acme/..", "owner/name"},
		"a deeper path":                   {workspace, hub, f.github.URL + "/acme/agent/tree", "owner/name"},
		"no name":                         {workspace, hub, f.github.URL + "/acme/.git", "owner/name"},
		"a query in the name":             {workspace, hub, f.github.URL + "/acme/agent%3Fx", "owner/name"},
	} {
		before := len(f.github.Asked())
		_, err := f.Check(t.Context(), c.workspace, c.integration, c.url)
		if asked := f.github.Asked()[before:]; len(asked) != 0 {
			t.Errorf("%s: GitHub was asked %v", name, asked)
		}
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: got %v", name, err)
		case c.want != "" && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want a fault that says %q", name, err, c.want)
		case err != nil && strings.Contains(err.Error(), "hush"):
			t.Errorf("%s: %v shows the password", name, err)
		}
		if _, cloneErr := f.CloneCredentials(t.Context(), c.workspace, c.integration, c.url); err != nil && (cloneErr == nil || cloneErr.Error() != err.Error()) {
			t.Errorf("%s: Check says %v, CloneCredentials %v", name, err, cloneErr)
		}
	}
}

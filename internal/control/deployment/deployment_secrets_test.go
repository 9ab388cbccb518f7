package deployment_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func (f *fixture) secrets(t *testing.T, ref deployment.Ref, sealed []byte) []deployment.Secret {
	t.Helper()
	secrets, err := f.Secrets(t.Context(), ref, sealed)
	check.Must(t, err)
	return secrets
}

func TestSecretsAreStoredSealedOnly(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	request := fromGit("weather")
	request.Secrets = []deployment.Secret{{Name: "PLANTED_NAME", Value: "planted-value"}, {Name: "B", Value: ""}}
	d := f.create(t, request)
	if diff := cmp.Diff(request.Secrets, f.secrets(t, d.Ref, f.get(t, d.Ref).Secrets)); diff != "" {
		t.Errorf("opened secrets (-want +got):\n%s", diff)
	}
	f.wantNowhere(t, "planted-value", "PLANTED_NAME")
}

// wantNowhere checks that a text is not in the table's files.
func (f *fixture) wantNowhere(t *testing.T, texts ...string) {
	t.Helper()
	stored := fixtures.Stored(t, f.file)
	if !strings.Contains(stored, workspace) {
		t.Fatal("the files that were searched do not hold what is stored")
	}
	for _, text := range texts {
		if strings.Contains(stored, text) {
			t.Errorf("%q is stored in clear", text)
		}
	}
}

func TestSealedSecretsOpenForTheirDeploymentOnly(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	request := fromGit("weather")
	request.Secrets = []deployment.Secret{{Name: "A", Value: "b"}}
	d, other := f.create(t, request), f.create(t, fromGit("other"))
	if secrets, err := f.Secrets(t.Context(), other.Ref, d.Secrets); err == nil {
		t.Errorf("another deployment opened %v", secrets)
	}
	stranger := deployment.Ref{Workspace: "another", Deployment: d.Deployment}
	if secrets, err := f.Secrets(t.Context(), stranger, d.Secrets); err == nil {
		t.Errorf("another workspace opened %v", secrets)
	}
}

func TestAPatchReplacesRemovesOrKeepsSecrets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		patch *[]deployment.Secret
		want  []deployment.Secret
	}{
		"absent keeps":    {nil, []deployment.Secret{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}}},
		"a list replaces": {&[]deployment.Secret{{Name: "C", Value: "3"}}, []deployment.Secret{{Name: "C", Value: "3"}}},
		"empty removes":   {&[]deployment.Secret{}, []deployment.Secret{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			request := fromGit("weather")
			request.Secrets = []deployment.Secret{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}}
			d := f.create(t, request)
			d = f.patch(t, d.Ref, deployment.Patch{Secrets: c.patch, RevisionConfig: revision.Config{RepoRef: new("dev")}})
			if diff := cmp.Diff(c.want, f.secrets(t, d.Ref, f.get(t, d.Ref).Secrets)); diff != "" {
				t.Errorf("secrets of the deployment (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.want, f.secrets(t, d.Ref, f.revision(t, d.Ref, d.Latest).Secrets)); diff != "" {
				t.Errorf("secrets of its newest revision (-want +got):\n%s", diff)
			}
		})
	}
}

// TestARevisionKeepsTheSecretsItWasMadeFrom checks that a later PATCH does not change the
// secrets of an existing revision.
func TestARevisionKeepsTheSecretsItWasMadeFrom(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	request := fromGit("weather")
	request.Secrets = []deployment.Secret{{Name: "A", Value: "old"}}
	first := f.create(t, request)
	f.patch(t, first.Ref, deployment.Patch{Secrets: &[]deployment.Secret{{Name: "A", Value: "new"}}})
	if diff := cmp.Diff(request.Secrets, f.secrets(t, first.Ref, f.revision(t, first.Ref, first.Latest).Secrets)); diff != "" {
		t.Errorf("secrets of the first revision (-want +got):\n%s", diff)
	}
}

// TestCredentialsOfARepository checks that credentials are taken out of the URL, that the
// builder gets them unescaped, and that they are never shown or stored in clear.
func TestCredentialsOfARepository(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sent, shown, credentials string }{
		"user and password":    {"https://planted:s3cret-word@git.test/a", "https://git.test/a", "planted:s3cret-word"},
		"escaped":              {"https://planted:s3cret%40word%2F%25@git.test/a", "https://git.test/a", "planted:s3cret@word/%"},
		"a colon":              {"https://planted:s3cret:word@git.test/a", "https://git.test/a", "planted:s3cret:word"},
		"a token":              {"https://planted-s3cret@git.test/a", "https://git.test/a", "planted-s3cret"},
		"an empty user name":   {"https://:planted-s3cret@git.test/a", "https://git.test/a", ":planted-s3cret"},
		"ssh with a password":  {"ssh://planted:s3cret-word@git.test/a", "ssh://git.test/a", "planted:s3cret-word"},
		"ssh with a user name": {"ssh://git@git.test/a", "ssh://git@git.test/a", ""},
		"ssh's short form":     {"git@git.test:a", "git@git.test:a", ""},
		"none":                 {"https://git.test/a?b=c#d", "https://git.test/a?b=c#d", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUp(t)
			request := fromGit("weather")
			request.SourceConfig.RepoURL = &c.sent
			created := f.create(t, request)
			d := f.get(t, created.Ref)
			if *created.SourceConfig.RepoURL != c.shown || *d.SourceConfig.RepoURL != c.shown {
				t.Errorf("repo_url: created with %s, read as %s, want %s", *created.SourceConfig.RepoURL, *d.SourceConfig.RepoURL, c.shown)
			}
			for of, sealed := range map[string][]byte{"deployment": d.Credentials, "revision": f.revision(t, d.Ref, d.Latest).Credentials} {
				if got := f.opened(t, d.Ref, sealed); got != c.credentials {
					t.Errorf("credentials of the %s: got %q, want %q", of, got, c.credentials)
				}
			}
			f.wantNowhere(t, "planted", "s3cret")
		})
	}
}

func (f *fixture) opened(t *testing.T, ref deployment.Ref, sealed []byte) string {
	t.Helper()
	if len(sealed) == 0 {
		return ""
	}
	plain, err := f.Open(t.Context(), ref, sealed)
	check.Must(t, err)
	return string(plain)
}

// TestCredentialsOfARepositoryAreReplaced sends the same URL with other credentials: the next
// revision is cloned with them.
func TestCredentialsOfARepositoryAreReplaced(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	request := fromGit("weather")
	request.SourceConfig.RepoURL = new("https://bot:old@git.test/team/agent")
	d := f.create(t, request)
	patched := f.patch(t, d.Ref, deployment.Patch{SourceConfig: deployment.SourceConfig{RepoURL: new("https://bot:renewed@git.test/team/agent")}, Revise: true})
	if *patched.SourceConfig.RepoURL != "https://git.test/team/agent" || patched.Version() <= d.Version() {
		t.Errorf("got %s of version %d", *patched.SourceConfig.RepoURL, patched.Version())
	}
	if got := f.opened(t, d.Ref, f.get(t, d.Ref).Credentials); got != "bot:renewed" {
		t.Errorf("the deployment has %q", got)
	}
	if got := f.opened(t, d.Ref, f.revision(t, d.Ref, patched.Latest).Credentials); got != "bot:renewed" {
		t.Errorf("the new revision has %q", got)
	}
	f.promote(t, d.Ref)
	again, err := f.Redeploy(t.Context(), d.Revision(d.Latest), nil)
	check.Must(t, err)
	if got := f.opened(t, d.Ref, f.revision(t, d.Ref, again.Latest).Credentials); got != "bot:renewed" {
		t.Errorf("a revision that is deployed again has %q", got)
	}
	if _, err := f.Patch(t.Context(), d.Ref, deployment.Patch{SourceConfig: deployment.SourceConfig{RepoURL: new("https://b%0at:x@git.test/team/agent")}}); !fault.Is(err, fault.Invalid) {
		t.Errorf("credentials that cannot be used: got %v", err)
	}
	if strings.Contains(fixtures.Stored(t, f.file), "renewed") {
		t.Error("the credentials are stored in clear")
	}
}

// TestTheSameRepositoryMayBeSentAgain checks PATCHes that repeat the URL, with its credentials
// or as reads show it.
func TestTheSameRepositoryMayBeSentAgain(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	request := fromGit("weather")
	request.SourceConfig.RepoURL = new("https://planted:s3cret-word@git.test/a")
	d := f.create(t, request)
	for _, url := range []string{"https://planted:s3cret-word@git.test/a", "https://git.test/a"} {
		d = f.patch(t, d.Ref, deployment.Patch{SourceConfig: deployment.SourceConfig{RepoURL: &url}})
		if got := f.opened(t, d.Ref, d.Credentials); *d.SourceConfig.RepoURL != "https://git.test/a" || got != "planted:s3cret-word" {
			t.Errorf("after %s: repo_url %s with %q, want them as they were", url, *d.SourceConfig.RepoURL, got)
		}
	}
	f.wantNowhere(t, "planted", "s3cret")
}

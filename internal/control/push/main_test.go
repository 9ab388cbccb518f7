package push_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/integration/githubtest"
	"github.com/slipway-run/slipway/internal/control/push"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

const (
	workspace = "0197a000-0000-7000-8000-000000000001"
	other     = "0197a000-0000-7000-8000-000000000002"
	d1        = "0197a000-0000-7000-8000-0000000000d1"
	d2        = "0197a000-0000-7000-8000-0000000000d2"
	d3        = "0197a000-0000-7000-8000-0000000000d3"

	appSecret   = "the-secret-of-the-webhook"
	olderSecret = "the-secret-that-was-before"

	before = "1111111111111111111111111111111111111111"
	after  = "2222222222222222222222222222222222222222"
	none   = "0000000000000000000000000000000000000000"
)

// builds is a Builder that notes its calls.
type builds struct {
	mu   sync.Mutex
	made []string
	// fail, when set, decides which error a build returns.
	fail func(deployment string) error
}

func (b *builds) Build(ctx context.Context, workspace, deployment, commit string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.fail != nil {
		if err := b.fail(deployment); err != nil {
			return err
		}
	}
	b.made = append(b.made, workspace[len(workspace)-1:]+" "+deployment[len(deployment)-2:]+" "+commit[:4])
	return nil
}

// Exists reports every deployment as existing.
func (b *builds) Exists(context.Context, string, string) (bool, error) { return true, nil }

// take returns the builds since the last call.
func (b *builds) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	made := b.made
	b.made = nil
	slices.Sort(made)
	return made
}

// fixture is a receiver on a SQLite file, with installation 77 of the App bound to workspace.
type fixture struct {
	*push.Receiver
	*builds
	file         string
	table        *recorder
	clock        *fixtures.Clock
	integrations *integration.Service
	github       *githubtest.Server
	config       push.Config
	key          *keyfile.Key
	secrets      []string
	deliveries   int
}

func setUp(t testing.TB) *fixture {
	t.Helper()
	file := filepath.Join(t.TempDir(), "table.db")
	key := fixtures.Key(t)
	moving := fixtures.NewMovingClock()
	tb := fixtures.TableAt(t, file, sqlite.WithClock(moving.Now))
	f := &fixture{key: key, secrets: []string{appSecret, olderSecret}, builds: &builds{}, file: file, table: &recorder{Table: tb}, clock: moving, github: githubtest.New(t, moving.Now)}
	var err error
	f.integrations, err = integration.New(integration.Config{Table: tb, Sealer: key, Now: moving.Now, Log: slog.New(slog.DiscardHandler), GitHub: &integration.App{
		ID: githubtest.AppID, Slug: githubtest.Slug, ClientID: githubtest.ClientID, ClientSecret: githubtest.ClientSecret,
		PrivateKey: githubtest.PrivateKey(), WebURL: f.github.URL, APIURL: f.github.APIURL(), Transport: f.github.Client().Transport,
	}})
	check.Must(t, err)
	f.config = push.Config{
		Table: f.table, Hasher: func(context.Context) (secret.Hasher, error) { return key, nil }, Now: moving.Now, Builder: f.builds,
		Installations: f.integrations, Secrets: func(context.Context) ([]string, error) { return f.secrets, nil },
	}
	f.Receiver = push.NewReceiver(f.config)
	f.github.Install(githubtest.Installation{ID: 77, Account: "acme", AccountID: 500})
	f.bind(t, workspace)
	return f
}

func (f *fixture) bind(t testing.TB, workspace string) integration.Installation {
	t.Helper()
	link, err := f.integrations.BeginInstall(t.Context(), workspace)
	check.Must(t, err)
	u, err := url.Parse(link)
	check.Must(t, err)
	i, err := f.integrations.CompleteInstall(t.Context(), integration.Callback{
		State: u.Query().Get("state"), InstallationID: 77, Code: f.github.Consent(githubtest.User{ID: 1, Roles: map[string]string{"acme": "admin"}}),
	})
	check.Must(t, err)
	return i
}

// HookSecret is the receiver's HookSecret, which does not fail here.
func (f *fixture) HookSecret(workspace, deployment string) string {
	secret, err := f.Receiver.HookSecret(context.Background(), workspace, deployment)
	if err != nil {
		panic(err)
	}
	return secret
}

// recorder counts the requests to a table, and can fail.
type recorder struct {
	table.Table
	mu      sync.Mutex
	queries []table.Query
	writes  int
	fail    func([]table.Write) error
}

func (r *recorder) Query(ctx context.Context, query table.Query) (table.Page, error) {
	r.mu.Lock()
	r.queries = append(r.queries, query)
	r.mu.Unlock()
	return r.Table.Query(ctx, query)
}

func (r *recorder) Transact(ctx context.Context, writes ...table.Write) error {
	r.mu.Lock()
	r.writes += len(writes)
	fail := r.fail
	r.mu.Unlock()
	if fail != nil {
		if err := fail(writes); err != nil {
			return err
		}
	}
	return r.Table.Transact(ctx, writes...)
}

// watch stores a deployment's settings for pushes.
func (f *fixture) watch(t testing.TB, workspace, deployment, repoURL, branch string, on bool) {
	t.Helper()
	w := push.Watch{Workspace: workspace, Deployment: deployment, RepoURL: repoURL, RepoRef: branch, BuildOnPush: on}
	check.Must(t, f.table.Transact(t.Context(), w.Write(f.clock.Now())))
}

// body is the payload of a push to main of acme/agent, with changes by dotted path; nil
// removes a member.
func body(changes map[string]any) []byte {
	p := map[string]any{
		"ref": "refs/heads/main", "before": before, "after": after, "created": false, "deleted": false, "forced": false,
		"installation": map[string]any{"id": 77},
		"repository": map[string]any{
			"id": 11, "full_name": "acme/agent", "clone_url": "https://github.com/acme/agent.git",
			"ssh_url": "git@github.com:acme/agent.git", "html_url": "https://github.com/acme/agent", "fork": false,
		},
		"commits": []any{map[string]any{"id": after, "message": "change"}}, "head_commit": map[string]any{"id": after}, "pusher": map[string]any{"name": "ada"},
	}
	for path, value := range changes {
		at := p
		parts := strings.Split(path, ".")
		for _, part := range parts[:len(parts)-1] {
			at = at[part].(map[string]any)
		}
		if last := parts[len(parts)-1]; value == nil {
			delete(at, last)
		} else {
			at[last] = value
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return text
}

// named returns the members of a repository with another name.
func named(name string, more map[string]any) map[string]any {
	changes := map[string]any{
		"repository.full_name": name, "repository.clone_url": "https://github.com/" + name + ".git",
		"repository.ssh_url": "git@github.com:" + name + ".git", "repository.html_url": "https://github.com/" + name,
	}
	maps.Copy(changes, more)
	return changes
}

func sign(body []byte, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// delivery is a delivery with a new id, signed with the secret.
func (f *fixture) delivery(event string, body []byte, secret string) push.Delivery {
	f.deliveries++
	return push.Delivery{Event: event, ID: fmt.Sprintf("delivery-%d", f.deliveries), Signature: sign(body, secret), Body: body}
}

// push sends a push from the App with changes, and returns the builds.
func (f *fixture) push(t testing.TB, changes map[string]any) []string {
	t.Helper()
	check.Must(t, f.App(t.Context(), f.delivery("push", body(changes), appSecret)))
	return f.take()
}

func wantBuilds(t testing.TB, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("built (-want +got):\n%s", diff)
	}
}

func wantFault(t testing.TB, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("got %v, want a fault of kind %s", err, kind)
	}
}

// assertNoSecrets looks for secrets in all stored data.
func (f *fixture) assertNoSecrets(t *testing.T, secrets ...string) {
	t.Helper()
	stored := fixtures.Stored(t, f.file)
	for _, secret := range secrets {
		if strings.Contains(stored, secret) {
			t.Error("the table holds a secret in clear")
		}
	}
}

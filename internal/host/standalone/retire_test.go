package standalone_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/jobs/reseal"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/workspacesecret"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// sealedKinds are the kinds of items that hold sealed texts.
var sealedKinds = []string{"answer", "auth_provider", "auth_request", "auth_token", "deployment", "git_credential", "listener_release", "revision", "webhook", "workspace_secret"}

// TestOlderKeysAreRetired has a server seal items of every kind, seals all of them again under
// the running server, retires the older key, and checks that the server works with the new key
// alone.
func TestOlderKeysAreRetired(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	c, stop := serve(t, data)
	call := func(method, path string, body any) (answer object) {
		t.Helper()
		status, text := ask(t, method, c.BaseURL+path, map[string]string{"X-Api-Key": c.APIKey, "Idempotency-Key": method + path}, body)
		if err := json.Unmarshal(text, &answer); err != nil || status/100 != 2 {
			t.Fatalf("%s %s: got %d %s (%v)", method, path, status, text, err)
		}
		return answer
	}
	at := call("POST", "/v2/listeners", object{"compute_type": "k8s", "compute_id": "cluster", "compute_config": object{"k8s_namespaces": []any{"agents"}}})
	listener := "/v2/listeners/" + at["id"].(string)
	created := call("POST", "/v2/deployments", object{
		"name": "weather", "source": "external_docker", "secrets": []any{object{"name": "TOKEN", "value": "open-sesame"}},
		"source_config":          object{"listener_id": at["id"], "listener_config": object{"k8s_namespace": "agents"}},
		"source_revision_config": object{"image_uri": "registry.test/agent:1"},
	})
	call("POST", "/v2/secrets", object{"name": "search", "data": object{"key": "open-sesame"}})
	call("POST", "/v2/webhooks", object{"url": "https://hooks.example.com/slipway"})
	call("POST", "/v2/integrations/git/credentials", object{"host": "git.example.com", "user": "deploy", "token": "open-sesame"})
	call("POST", "/v2/auth/providers", object{
		"provider_id": "calendar", "name": "Calendar", "client_id": "slipway", "client_secret": "open-sesame", "uses_pkce": true,
		"auth_url": "https://accounts.example.com/authorize", "token_url": "https://accounts.example.com/token",
	})
	call("POST", "/v2/auth/tokens/import", object{"provider_id": "calendar", "access_token": "open-sesame", "user_id": "ada", "scopes": []any{"read"}})
	call("POST", "/v2/auth/authenticate", object{"provider": "calendar", "user_id": "grace", "scopes": []any{"read"}})
	claim := call("POST", listener+"/claim", object{"holder": "a", "wait": 20})
	if work, _ := claim["work"].([]any); len(work) != 1 {
		t.Fatalf("the listener got %v", claim)
	}

	tb, file := open(t, data), filepath.Join(data, standalone.KeyFile)
	defer tb.Close()
	_, err := keyfile.Rotate(file)
	check.Must(t, err)
	key := fixtures.KeyAt(t, file)
	rewritten, err := reseal.Run(t.Context(), tb, key)
	check.Must(t, err)
	if diff := cmp.Diff(sealedKinds, slices.Sorted(maps.Keys(rewritten))); diff != "" {
		t.Errorf("kinds that were sealed anew (-want +got):\n%s", diff)
	}
	left, err := reseal.Look(t.Context(), tb, key.KeyID(), clock.System())
	if err != nil || len(left.Keys) != 1 || !slices.Equal(left.AtListeners, []string{created["id"].(string)}) {
		t.Errorf("left are %+v (%v)", left, err)
	}
	stop()
	c, stop = serve(t, data)
	shows := func() {
		t.Helper()
		_, text := ask(t, http.MethodGet, c.BaseURL+"/v2/deployments/"+created["id"].(string), map[string]string{"X-Api-Key": c.APIKey}, nil)
		var got struct{ Secrets []struct{ Value string } }
		if err := json.Unmarshal(text, &got); err != nil || len(got.Secrets) != 1 || got.Secrets[0].Value != "open-sesame" {
			t.Errorf("got %s", text)
		}
	}
	shows()
	stop()
	// The use of the API key has moved it to the newer key.
	gone, held, err := standalone.RetireKeys(t.Context(), data, tb)
	if err != nil || gone != 1 || !slices.Equal(held, left.AtListeners) {
		t.Fatalf("%d keys went, held are %v (%v)", gone, held, err)
	}
	c, stop = serve(t, data)
	defer stop()
	shows()
	again := call("POST", "/v2/webhooks", object{"url": "https://hooks.example.com/slipway"})
	if secret, _ := again["secret"].(string); secret == "" {
		t.Errorf("the answer was not kept: %v", again)
	}
	token := call("POST", "/v2/auth/authenticate?ada", object{"provider": "calendar", "user_id": "ada", "scopes": []any{"read"}})
	if token["token"] != "open-sesame" {
		t.Errorf("got %v", token)
	}
}

func secretsOf(t *testing.T, data string, tb table.Table) *workspacesecret.Store {
	t.Helper()
	key := fixtures.KeyAt(t, filepath.Join(data, standalone.KeyFile))
	return workspacesecret.NewStore(workspacesecret.Config{Table: tb, Sealer: key, Now: clock.System})
}

// makeSecret makes a secret that the newest key of a data directory seals.
func makeSecret(t *testing.T, data string, tb table.Table) workspacesecret.Ref {
	t.Helper()
	of, err := secretsOf(t, data, tb).Create(t.Context(), workspacesecret.Ref{Workspace: rand.Text(), Name: "search"}, map[string]string{"key": "open-sesame"})
	check.Must(t, err)
	return of.Ref
}

// wantSecrets checks that the keys of a data directory open secrets that makeSecret has made.
func wantSecrets(t *testing.T, data string, tb table.Table, secrets ...workspacesecret.Ref) {
	t.Helper()
	s := secretsOf(t, data, tb)
	for _, ref := range secrets {
		if contents, err := s.Contents(t.Context(), ref.Workspace, ref.Name); err != nil || contents[ref.Name].Data["key"] != "open-sesame" {
			t.Errorf("%s: got %v (%v)", ref.Workspace, contents, err)
		}
	}
}

// scanned is a table that runs a function before it is read whole for the first time.
type scanned struct {
	reseal.Table
	before func()
}

func (s *scanned) Scan(ctx context.Context, take func(*table.Item) error) error {
	s.before()
	s.before = func() {}
	return s.Table.Scan(ctx, take)
}

// TestAKeyIsMadeWhileOthersAreRetired has an operator run both commands at once. The command
// does not look for values that the key in the middle has sealed, so no key may go.
func TestAKeyIsMadeWhileOthersAreRetired(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	tb, file := open(t, data), filepath.Join(data, standalone.KeyFile)
	defer tb.Close()
	rotate := func() {
		_, err := keyfile.Rotate(file)
		check.Must(t, err)
	}
	secrets := []workspacesecret.Ref{makeSecret(t, data, tb)}
	rotate()
	secrets = append(secrets, makeSecret(t, data, tb))
	gone, _, err := standalone.RetireKeys(t.Context(), data, &scanned{tb, rotate})
	if !errors.Is(err, keyfile.ErrRotated) || gone != 0 {
		t.Errorf("%d keys went (%v)", gone, err)
	}
	opens := func() {
		t.Helper()
		wantSecrets(t, data, tb, secrets...)
	}
	opens()
	if gone, _, err = standalone.RetireKeys(t.Context(), data, tb); err != nil || gone != 2 {
		t.Errorf("%d keys went (%v)", gone, err)
	}
	opens()
}

// begun is a writer that runs a function before its first byte is written.
type begun struct {
	bytes.Buffer
	before func()
}

func (b *begun) Write(p []byte) (int, error) {
	b.before()
	b.before = func() {}
	return b.Buffer.Write(p)
}

// TestKeysAreRetiredDuringABackup has the backup copy the records before the values are sealed
// again, and files after the older keys are gone.
func TestKeysAreRetiredDuringABackup(t *testing.T) {
	t.Parallel()
	data := newData(t)
	tb := open(t, data)
	secret := makeSecret(t, data, tb)
	_, err := keyfile.Rotate(filepath.Join(data, standalone.KeyFile))
	check.Must(t, err)
	archive := &begun{before: func() {
		gone, _, err := standalone.RetireKeys(t.Context(), data, tb)
		if err != nil || gone != 1 {
			t.Errorf("%d keys went (%v)", gone, err)
		}
	}}
	check.Must(t, standalone.Backup(t.Context(), data, archive, func(string, error) {}))
	check.Must(t, tb.Close())
	restored := filepath.Join(t.TempDir(), "restored")
	_, err = standalone.Restore(t.Context(), archive, restored)
	check.Must(t, err)
	tb = open(t, restored)
	defer tb.Close()
	wantSecrets(t, restored, tb, secret)
}

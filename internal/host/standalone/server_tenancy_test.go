package standalone_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/api/oidc/oidctest"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// serve runs a server on a data directory and returns its credentials, and a function that stops
// it.
func serve(t *testing.T, data string, issuers ...oidc.Issuer) (c standalone.Credentials, stop func()) {
	t.Helper()
	return serveWith(t, standalone.Config{Data: data, Issuers: issuers, Log: slog.New(slog.DiscardHandler)})
}

// serveWith runs a server with a configuration, except for the address.
func serveWith(t *testing.T, config standalone.Config) (c standalone.Credentials, stop func()) {
	t.Helper()
	data := config.Data
	check.Must(t, removeBaseURL(data))
	config.Listen = "127.0.0.1:0"
	server, err := standalone.Open(config)
	check.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		c, err := standalone.ReadCredentials(data)
		if err == nil && c.BaseURL == server.BaseURL() {
			return c, stop
		}
		select {
		case <-again.C:
		case err := <-ended:
			t.Fatalf("the server ended: %v", err)
		}
	}
}

// removeBaseURL makes the credentials file of a directory show when the next server is ready.
func removeBaseURL(data string) error {
	c, err := standalone.ReadCredentials(data)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	c.BaseURL = ""
	text, encodeErr := json.Marshal(c)
	return errors.Join(err, encodeErr, os.WriteFile(filepath.Join(data, standalone.CredentialsFile), text, 0o600))
}

func open(t *testing.T, data string) *sqlite.Table {
	t.Helper()
	return fixtures.TableAt(t, filepath.Join(data, standalone.DatabaseFile))
}

func wantStatus(t *testing.T, what, method, url string, headers map[string]string, want int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	check.Must(t, err)
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	check.Must(t, err)
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != want {
		t.Errorf("%s: got %d %s (%v), want %d", what, response.StatusCode, text, err, want)
	}
}

// TestLostCredentials checks that lost credentials are made again for the same workspace. Earlier
// releases could leave empty files if the machine lost its power.
func TestLostCredentials(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(data string) error{
		"removed": func(data string) error { return os.Remove(filepath.Join(data, standalone.CredentialsFile)) },
		"empty": func(data string) error {
			containers := filepath.Join(data, "agents", "containers")
			return errors.Join(os.Truncate(filepath.Join(data, standalone.CredentialsFile), 0),
				os.MkdirAll(containers, 0o700), os.WriteFile(filepath.Join(containers, "server"), nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			before, stop := serve(t, data)
			stop()
			check.Must(t, lose(data))
			after, stop := serve(t, data)
			defer stop()
			if after.TenantID != before.TenantID || after.APIKey == before.APIKey {
				t.Errorf("got workspace %s, want %s and another key", after.TenantID, before.TenantID)
			}
			for _, key := range []string{before.APIKey, after.APIKey} {
				wantStatus(t, "list", http.MethodGet, after.BaseURL+"/v2/deployments", map[string]string{"X-Api-Key": key}, http.StatusOK)
			}
		})
	}
}

// ask sends a request and returns the answer; a body is sent as JSON.
func ask(t *testing.T, method, url string, headers map[string]string, body any) (status int, text []byte) {
	t.Helper()
	content, err := json.Marshal(body)
	check.Must(t, err)
	request, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(content))
	check.Must(t, err)
	request.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	check.Must(t, err)
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	check.Must(t, err)
	return response.StatusCode, text
}

type object = map[string]any

// TestBearerTokens admits a job of one repository and a person, by the rules that an admin
// sends over HTTP: the job creates a deployment.
func TestBearerTokens(t *testing.T) {
	t.Parallel()
	ci, people := oidctest.New(t), oidctest.New(t)
	c, stop := serve(t, t.TempDir(), oidc.Issuer{URL: ci.URL, Audience: oidctest.Audience}, oidc.Issuer{URL: people.URL, Audience: oidctest.Audience, Members: true})
	defer stop()
	admin := map[string]string{"X-Api-Key": c.APIKey}
	for path, body := range map[string]object{
		"trust-rules": {"issuer": ci.URL, "role": "editor", "claims": object{"repository_id": "7", "ref": "refs/heads/main"}},
		"members":     {"user": "ada@example.test", "role": "viewer"},
	} {
		if status, text := ask(t, http.MethodPost, c.BaseURL+"/v2/workspaces/current/"+path, admin, body); status != http.StatusCreated {
			t.Fatalf("got %d %s", status, text)
		}
	}
	job := func(repository int, ref string) string {
		return ci.Token(time.Now(), object{"sub": "repo:o/r", "repository_id": repository, "ref": ref})
	}
	ada := people.Token(time.Now(), object{"email": "ada@example.test", "email_verified": true})
	list, unknown := c.BaseURL+"/v2/deployments", c.BaseURL+"/v2/deployments/0197a000-0000-7000-8000-00000000dead"
	server := c.BaseURL + "/d/0197a000-0000-7000-8000-00000000dead/threads"
	main, branch := job(7, "refs/heads/main"), job(7, "refs/heads/x")
	named := 0
	for what, r := range map[string]struct {
		method, url, token, tenant string
		want                       int
	}{
		"read":                    {http.MethodGet, list, main, c.TenantID, http.StatusOK},
		"create":                  {http.MethodPost, list, main, c.TenantID, http.StatusCreated},
		"delete":                  {http.MethodDelete, unknown, main, c.TenantID, http.StatusForbidden},
		"manage":                  {http.MethodPost, c.BaseURL + "/v2/api-keys", main, c.TenantID, http.StatusForbidden},
		"another repository":      {http.MethodPost, list, job(8, "refs/heads/main"), c.TenantID, http.StatusForbidden},
		"another ref":             {http.MethodPost, list, branch, c.TenantID, http.StatusForbidden},
		"no workspace":            {http.MethodGet, list, main, "", http.StatusForbidden},
		"another workspace":       {http.MethodGet, list, main, "0197a000-0000-7000-8000-00000000dead", http.StatusForbidden},
		"no token":                {http.MethodGet, list, "Bearer x", c.TenantID, http.StatusUnauthorized},
		"a member reads":          {http.MethodGet, list, ada, c.TenantID, http.StatusOK},
		"a member creates":        {http.MethodPost, list, ada, c.TenantID, http.StatusForbidden},
		"a person who is none":    {http.MethodGet, list, people.Token(time.Now(), nil), c.TenantID, http.StatusForbidden},
		"an agent server":         {http.MethodPost, server, main, c.TenantID, http.StatusNotFound},
		"an agent server, nobody": {http.MethodPost, server, "", c.TenantID, http.StatusUnauthorized},
	} {
		headers := map[string]string{}
		for name, value := range map[string]string{"Authorization": r.token, "X-Tenant-Id": r.tenant} {
			if value != "" {
				headers[name] = value
			}
		}
		named++
		body := object{
			"name": fmt.Sprint("weather-", named), "source": "external_docker", "secrets": []any{}, "source_config": object{},
			"source_revision_config": object{"image_uri": "registry.test/agent:1"}, "role": "viewer",
		}
		if status, text := ask(t, r.method, r.url, headers, body); status != r.want {
			t.Errorf("%s: got %d %s, want %d", what, status, text, r.want)
		}
	}
	_, log := ask(t, http.MethodGet, c.BaseURL+"/v2/audit-log?action=create_deployment", admin, nil)
	if !strings.Contains(string(log), `"subject":"repo:o/r of `+ci.URL+`"`) {
		t.Errorf("the audit log does not say that it was the job: %s", log)
	}
}

// TestTheKeyIsRotatedWhileTheServerRuns seals before and after. Then the older key is removed
// without sealing again, which no command does: only the values that it has sealed are lost.
func TestTheKeyIsRotatedWhileTheServerRuns(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	c, stop := serve(t, data)
	admin := map[string]string{"X-Api-Key": c.APIKey}
	create := func(name, value string) string {
		t.Helper()
		var created struct{ ID string }
		status, text := ask(t, http.MethodPost, c.BaseURL+"/v2/deployments", admin, object{
			"name": name, "source": "external_docker", "secrets": []any{object{"name": "TOKEN", "value": value}}, "source_config": object{},
			"source_revision_config": object{"image_uri": "registry.test/agent:1"},
		})
		if err := json.Unmarshal(text, &created); err != nil || status != http.StatusCreated {
			t.Fatalf("got %d %s (%v)", status, text, err)
		}
		return created.ID
	}
	issue := func() string {
		t.Helper()
		var made struct{ Key string }
		status, text := ask(t, http.MethodPost, c.BaseURL+"/v2/api-keys", admin, object{"role": "viewer"})
		if err := json.Unmarshal(text, &made); err != nil || status != http.StatusCreated {
			t.Fatalf("got %d %s (%v)", status, text, err)
		}
		return made.Key
	}
	shows := func(id, value string, want int) {
		t.Helper()
		status, text := ask(t, http.MethodGet, c.BaseURL+"/v2/deployments/"+id, admin, nil)
		if status != want || strings.Contains(string(text), value) != (want == http.StatusOK) {
			t.Errorf("got %d %s, want %d with %s", status, text, want, value)
		}
	}
	lets := func(key string, want int) {
		t.Helper()
		wantStatus(t, "a key", http.MethodGet, c.BaseURL+"/v2/workspaces/current", map[string]string{"X-Api-Key": key}, want)
	}
	older, unused := create("older", "open-sesame-1"), issue()
	file := filepath.Join(data, standalone.KeyFile)
	if count, err := keyfile.Rotate(file); err != nil || count != 2 {
		t.Fatalf("%d keys (%v)", count, err)
	}
	newer, fresh := create("newer", "open-sesame-2"), issue()
	for range 2 {
		shows(older, "open-sesame-1", http.StatusOK)
		shows(newer, "open-sesame-2", http.StatusOK)
		lets(fresh, http.StatusOK)
		stop()
		c, stop = serve(t, data) // Close has also written the notes about keys
	}
	stop()
	both, err := os.ReadFile(file)
	check.Must(t, err)
	check.Must(t, os.WriteFile(file, both[32:], 0o600))
	c, stop = serve(t, data)
	defer stop()
	shows(newer, "open-sesame-2", http.StatusOK)
	shows(older, "open-sesame-1", http.StatusInternalServerError)
	lets(fresh, http.StatusOK)
	lets(unused, http.StatusUnauthorized)
}

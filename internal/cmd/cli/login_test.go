package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/zalando/go-keyring"

	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/api/oidc/oidctest"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/test/check"
)

// execute runs a command in this process, whose keyring is the test's.
func execute(t *testing.T, cmd *cobra.Command, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// TestASignInInTheKeyring signs in where the operating system has a keyring: no file holds a
// secret, and the sign-out and the removal of the context empty the keyring.
func TestASignInInTheKeyring(t *testing.T) {
	t.Setenv(noKeyring, "")
	config, address, issuer := setUpLogin(t)
	go func() {
		for {
			select {
			case code := <-issuer.Shown():
				issuer.Approve(code)
			case <-t.Context().Done():
				return
			}
		}
	}()
	for _, leave := range []func() *cobra.Command{newLogout, newContextRemove} {
		text, err := execute(t, newLogin(), "--url", address, "--context", "team")
		if err != nil || strings.Contains(text, "keyring") {
			t.Fatalf("%v: %s", err, text)
		}
		file, err := os.ReadFile(filepath.Join(config, "slipway", "contexts.json"))
		if os.IsNotExist(err) {
			file, err = os.ReadFile(filepath.Join(config, "Library", "Application Support", "slipway", "contexts.json"))
		}
		check.Must(t, err)
		kept, err := keyring.Get(keyringService, "team "+address)
		if err != nil || !strings.Contains(kept, "slws_") || strings.Contains(string(file), "slws_") || strings.Contains(string(file), "credential") {
			t.Errorf("the keyring holds %q (%v), the file %s", kept, err, file)
		}
		if text, err := execute(t, newWhoami()); err != nil || !strings.Contains(text, "ann@example.test") {
			t.Errorf("%v: %s", err, text)
		}
		args := []string{"--context", "team"}
		if strings.HasPrefix(leave().Use, "remove") {
			args = []string{"team"}
		}
		if text, err := execute(t, leave(), args...); err != nil {
			t.Errorf("%v: %s", err, text)
		}
		if kept, err := keyring.Get(keyringService, "team "+address); err != keyring.ErrNotFound {
			t.Errorf("the keyring still holds %q (%v)", kept, err)
		}
	}
}

// setUpLogin gives a test that has switched the keyring on a keyring of its own, a directory of
// configurations, and a server with an issuer.
func setUpLogin(t *testing.T) (config, address string, issuer *oidctest.Issuer) {
	t.Helper()
	keyring.MockInit()
	config = t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("HOME", config)
	issuer = oidctest.New(t)
	issuer.SetPerson(map[string]any{"sub": "1", "email": "ann@example.test", "email_verified": true})
	return config, serveWith(t, issuer), issuer
}

// TestALoginWaitsWhileContextsChange changes the contexts while a person signs in, and removes the
// sign-in while a command renews it.
func TestALoginWaitsWhileContextsChange(t *testing.T) {
	t.Setenv(noKeyring, "")
	_, address, issuer := setUpLogin(t)
	done := make(chan error, 1)
	go func() {
		_, err := execute(t, newLogin(), "--url", address, "--context", "team")
		done <- err
	}()
	code := <-issuer.Shown()
	check.Must(t, changeContexts(t.Context(), func(all *contexts) error {
		all.Contexts["other"] = savedServer{URL: "https://other.test", Key: "key"}
		return nil
	}))
	issuer.Approve(code)
	check.Must(t, <-done)
	all, err := readContexts()
	check.Must(t, err)
	if len(all.Contexts) != 2 || all.Contexts["other"].Key != "key" || all.Current != "team" {
		t.Errorf("the contexts are %+v", all)
	}
	found := all.Contexts["team"]
	check.Must(t, found.store("team", credential{Refresh: "old"}))
	check.Must(t, changeContexts(t.Context(), func(all *contexts) error {
		all.Contexts["team"] = savedServer{URL: address}
		return nil
	}))
	if token, err := signedIn(t.Context(), "team", found, io.Discard); token != "" || exit.Code(err) != exit.Credentials || issuer.Refreshes() > 0 {
		t.Errorf("a sign-in that has been removed: got %q (%v)", token, err)
	}
	if all, err := readContexts(); err != nil || all.Contexts["team"].Login != nil {
		t.Errorf("the sign-in is back: %+v (%v)", all, err)
	}
}

// TestAKeyringThatDoesNotWork keeps a session in the file where the keyring refuses it, says so
// once, and leaves nothing in the keyring.
func TestAKeyringThatDoesNotWork(t *testing.T) {
	t.Setenv(noKeyring, "")
	config, address, issuer := setUpLogin(t)
	go func() { issuer.Approve(<-issuer.Shown()) }()
	if text, err := execute(t, newLogin(), "--url", address, "--context", "team"); err != nil || strings.Contains(text, "keyring") {
		t.Fatalf("%v: %s", err, text)
	}
	all, err := readContexts()
	check.Must(t, err)
	check.Must(t, all.Contexts["team"].store("team", credential{Refresh: "none"}))
	keyring.MockInitWithError(errors.New("it is locked"))
	if text, err := execute(t, newWhoami()); exit.Code(err) != exit.Credentials || !strings.Contains(err.Error(), "it is locked") {
		t.Errorf("%v: %s", err, text)
	}
	go func() { issuer.Approve(<-issuer.Shown()) }()
	text, err := execute(t, newLogin())
	if err != nil || !strings.Contains(text, "the keyring does not take the session (it is locked): it is kept in "+config) || !strings.Contains(text, "is forgotten here, but: ") {
		t.Errorf("%v: %s", err, text)
	}
	if text, err = execute(t, newWhoami()); err != nil || strings.Contains(text, "keyring") {
		t.Errorf("%v: %s", err, text)
	}
	if text, err = execute(t, newLogout()); err != nil {
		t.Errorf("%v: %s", err, text)
	}
}

// serveWith runs a server with an issuer, of whose only workspace ann is a member, and returns its
// address.
func serveWith(t *testing.T, issuer *oidctest.Issuer) string {
	t.Helper()
	data := t.TempDir()
	server, err := standalone.Open(standalone.Config{
		Listen: "127.0.0.1:0", Data: data, Log: slog.New(slog.DiscardHandler), SignIn: &oidc.Issuer{URL: issuer.URL, Audience: oidctest.ClientID, Members: true},
	})
	check.Must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for {
		if c, err := standalone.ReadCredentials(data); err == nil {
			at := client.New(client.Server{URL: c.BaseURL, Key: c.APIKey})
			member := map[string]string{"user": "ann@example.test", "role": "viewer"}
			check.Must(t, at.Call(t.Context(), http.MethodPost, "/v2/workspaces/current/members", member, nil))
			return c.BaseURL
		}
		select {
		case err := <-ended:
			t.Fatalf("the server ended: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

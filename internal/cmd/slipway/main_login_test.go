package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/slipway-run/slipway/internal/api/oidc/oidctest"
)

// TestLogin runs the script of a person who signs in at an issuer, of which the script finds the
// address in $ISSUER. $PLAIN is a server without an issuer, which knows none of the paths.
func TestLogin(t *testing.T) {
	t.Parallel()
	issuer := oidctest.New(t)
	person := func(email string) {
		issuer.SetPerson(map[string]any{"sub": "1", "email": email, "email_verified": true})
	}
	person("ann@example.test")
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "login"),
		Setup: func(env *testscript.Env) error {
			for name, value := range map[string]string{
				"ISSUER": issuer.URL, "PLAIN": plain.URL, "SLIPWAY_NO_KEYRING": "1", "XDG_CONFIG_HOME": filepath.Join(env.WorkDir, ".config"),
			} {
				env.Setenv(name, value)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "await": await, "credentials": credentials, "terminate": terminate, "overdue": overdue, "bearer": bearer, "accepts": accepts,
			"person":   func(_ *testscript.TestScript, _ bool, args []string) { person(args[0]) },
			"refusing": func(*testscript.TestScript, bool, []string) { issuer.SetPerson(nil) },
			"blocked":  func(*testscript.TestScript, bool, []string) { issuer.Forget() },
			"silence":  func(*testscript.TestScript, bool, []string) { issuer.Silence() },
			"slowdown": func(*testscript.TestScript, bool, []string) { issuer.SlowDown() },
			// approve waits for the next code of a device, and enters it.
			"approve": func(ts *testscript.TestScript, _ bool, _ []string) {
				select {
				case code := <-issuer.Shown():
					issuer.Approve(code)
				case <-time.After(readyLimit):
					ts.Fatalf("no device asks for a code")
				}
			},
			"refreshable": func(ts *testscript.TestScript, _ bool, args []string) { wantCount(ts, args[0], issuer.Refreshable()) },
			"refreshes":   func(ts *testscript.TestScript, _ bool, args []string) { wantCount(ts, args[0], issuer.Refreshes()) },
			"hasty":       func(ts *testscript.TestScript, _ bool, args []string) { wantCount(ts, args[0], issuer.Hasty()) },
		},
	})
}

func wantCount(ts *testscript.TestScript, want string, got int) {
	if strconv.Itoa(got) != want {
		ts.Fatalf("got %d, want %s", got, want)
	}
}

const contextsFile = ".config/slipway/contexts.json"

// overdue makes the sessions of all contexts look as if they were over.
func overdue(ts *testscript.TestScript, _ bool, _ []string) {
	text := regexp.MustCompile(`"expires": "[^"]+"`).ReplaceAllString(ts.ReadFile(contextsFile), `"expires": "2020-01-01T00:00:00Z"`)
	ts.Check(os.WriteFile(ts.MkAbs(contextsFile), []byte(text), 0o600))
}

// bearer sets a variable to the token of the session of the context team: bearer NAME.
func bearer(ts *testscript.TestScript, _ bool, args []string) {
	var all struct {
		Contexts map[string]struct {
			Login struct {
				Credential struct{ Token string }
			}
		}
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(contextsFile)), &all))
	token := all.Contexts["team"].Login.Credential.Token
	if token == "" || token == ts.Getenv("OLD") {
		ts.Fatalf("the token is %q", token)
	}
	ts.Setenv(args[0], token)
}

// accepts sends a token to the server: accepts status token.
func accepts(ts *testscript.TestScript, _ bool, args []string) {
	request, err := http.NewRequest(http.MethodGet, "http://"+ts.Getenv("LISTEN")+"/v2/workspaces/current", http.NoBody)
	ts.Check(err)
	request.Header.Set("Authorization", "Bearer "+args[1])
	response, err := http.DefaultClient.Do(request)
	ts.Check(err)
	ts.Check(response.Body.Close())
	wantCount(ts, args[0], response.StatusCode)
}

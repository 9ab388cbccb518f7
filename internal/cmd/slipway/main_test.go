package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/host/standalone"
)

// readyLimit bounds the wait for a file; it is generous because other tests may take all of the machine.
const readyLimit = time.Minute

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"slipway": main})
}

// TestScripts runs the command line as its users do. Beside testscript's own commands, a script may use those below. It finds in
// $URL a server that counts requests and answers 401 to all but GET /ok, in $BUSY an address that is taken, and in $AGENT the
// example agent, already built.
func TestScripts(t *testing.T) {
	t.Parallel()
	agent := buildAgent(t)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "terminate": terminate, "await": await, "requests": requests, "plain": plain, "ndjson": ndjson,
			"keep": keep, "keyid": keyid, "answers": answers, "deployed": deployed, "holds": holds,
		},
		Setup: func(env *testscript.Env) error {
			counter := new(atomic.Int64)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				counter.Add(1)
				if r.URL.Path != "/ok" {
					w.WriteHeader(http.StatusUnauthorized)
					fmt.Fprint(w, `{"detail": "The API key is not known."}`)
				}
			}))
			env.Defer(server.Close)
			env.Values[requestsKey{}] = counter
			env.Setenv("URL", server.URL)
			env.Setenv("BUSY", server.Listener.Addr().String())
			env.Setenv("AGENT", agent)
			env.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			return nil
		},
	})
}

// requestsKey is the key of the counter among a script's values.
type requestsKey struct{}

// buildAgent builds the example once for all scripts, which then need not wait for it.
func buildAgent(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "weather"), ".")
	build.Dir = filepath.Join("..", "..", "..", "infra", "examples", "weather")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, output)
	}
	config := `{"graphs": {"agent": "./agent.go:agent"}, "start": "./weather"}`
	if err := os.WriteFile(filepath.Join(dir, "framework.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// exits runs a command that must end with the given exit code: exits code command...
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exited, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exited.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// terminate asks the background commands to end, with SIGTERM, which testscript's own kill cannot send.
func terminate(ts *testscript.TestScript, _ bool, _ []string) {
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	}
}

// await waits until a file exists.
func await(ts *testscript.TestScript, _ bool, args []string) {
	deadline := time.NewTimer(readyLimit)
	defer deadline.Stop()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			ts.Fatalf("%s does not appear", args[0])
		}
	}
}

// requests compares how many requests $URL has had.
func requests(ts *testscript.TestScript, _ bool, args []string) {
	if got := fmt.Sprint(ts.Value(requestsKey{}).(*atomic.Int64).Load()); got != args[0] {
		ts.Fatalf("the server had %s requests, want %s", got, args[0])
	}
}

// plain checks that outputs move no cursor and have no colour.
func plain(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		if text := ts.ReadFile(name); text == "" || strings.ContainsAny(text, "\x1b\r") {
			ts.Fatalf("%s is empty or not plain: %q", name, text)
		}
	}
}

// ndjson checks that each line of stdout is an event, and that the events named occur in that order.
func ndjson(ts *testscript.TestScript, _ bool, kinds []string) {
	lines := bufio.NewScanner(strings.NewReader(ts.ReadFile("stdout")))
	last := ""
	for lines.Scan() {
		var event struct {
			Event string
			Time  time.Time
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil || event.Event == "" || event.Time.IsZero() {
			ts.Fatalf("not an event: %s (%v)", lines.Text(), err)
		}
		if last = event.Event; len(kinds) > 0 && last == kinds[0] {
			kinds = kinds[1:]
		}
	}
	ts.Check(lines.Err())
	if len(kinds) > 0 || last != "result" {
		ts.Fatalf("the events %v are missing, the last one is %q", kinds, last)
	}
}

// keep takes what the last command printed as the value of a variable: keep NAME.
func keep(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSuffix(ts.ReadFile("stdout"), "\n"))
}

// keyid finds the id of the key of a name in a JSON list of keys: keyid VARIABLE name.
func keyid(ts *testscript.TestScript, _ bool, args []string) {
	var list []struct{ ID, Name string }
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &list))
	for _, key := range list {
		if key.Name == args[1] {
			ts.Setenv(args[0], key.ID)
			return
		}
	}
	ts.Fatalf("there is no key named %s", args[1])
}

// deployed finds the only deployment at the server of the directory data, and sets $NAME, $ID and $REVISION of it, and $KEY, $TENANT and $LISTEN of the server.
func deployed(ts *testscript.TestScript, _ bool, _ []string) {
	credentials, err := standalone.ReadCredentials(ts.MkAbs("data"))
	ts.Check(err)
	var list struct {
		Resources []struct {
			ID       string
			Name     string
			Revision string `json:"latest_revision_id"`
		}
	}
	server := client.Server{URL: credentials.BaseURL, Key: credentials.APIKey, Tenant: credentials.TenantID}
	ts.Check(client.New(server).Call(context.Background(), http.MethodGet, "/v2/deployments", nil, &list))
	if len(list.Resources) != 1 {
		ts.Fatalf("there are %d deployments", len(list.Resources))
	}
	one := list.Resources[0]
	for name, value := range map[string]string{
		"ID": one.ID, "NAME": one.Name, "REVISION": one.Revision, "KEY": credentials.APIKey, "TENANT": credentials.TenantID, "LISTEN": strings.TrimPrefix(credentials.BaseURL, "http://"),
	} {
		ts.Setenv(name, value)
	}
}

// holds waits until a file has so many lines with a text: holds count text file.
func holds(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	deadline := time.NewTimer(readyLimit)
	defer deadline.Stop()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		text, err := os.ReadFile(ts.MkAbs(args[2]))
		if err == nil && strings.Count(string(text), args[1]) >= want {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			ts.Fatalf("%s holds %q (%v)", args[2], text, err)
		}
	}
}

// answers sends a request to the server of the directory data: answers status method path key [body].
func answers(ts *testscript.TestScript, _ bool, args []string) {
	credentials, err := standalone.ReadCredentials(ts.MkAbs("data"))
	ts.Check(err)
	body := "{}"
	if len(args) > 4 {
		body = args[4]
	}
	request, err := http.NewRequest(args[1], credentials.BaseURL+args[2], strings.NewReader(body))
	ts.Check(err)
	request.Header.Set("X-Api-Key", args[3])
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	ts.Check(err)
	defer response.Body.Close()
	if got := strconv.Itoa(response.StatusCode); got != args[0] {
		text, err := io.ReadAll(response.Body)
		ts.Fatalf("status %s, want %s: %s (%v)", got, args[0], text, err)
	}
}

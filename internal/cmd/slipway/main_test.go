package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/test/check"
)

// readyLimit bounds the wait for a file; it is generous because other tests may take all of the
// machine.
const readyLimit = time.Minute

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"slipway": main, "sayagent": sayAgent})
}

// TestScripts runs the command line as its users do. Beside testscript's own commands, a
// script may use the commands below. It finds in $URL a server that counts requests and
// answers 401 to all requests except GET /ok, in $BUSY an address that is taken, in $AGENT the
// example agent, already built, and in $SMALL a directory that names its program, which is
// quick to upload. Scripts that run one command after the other have no race to find: with the race
// detector, which more than doubles their time, they are skipped.
func TestScripts(t *testing.T) {
	t.Parallel()
	agent := buildAgent(t)
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	check.Must(t, err)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "terminate": terminate, "hangup": hangup, "await": await, "requests": requests, "plain": plain, "ndjson": ndjson, "members": members,
			"keep": keep, "keyid": keyid, "answers": answers, "credentials": credentials, "deployed": deployed, "holds": holds,
			"typed": typed, "threadid": threadID, "flaky": flaky, "slipwaypath": slipwayPath, "threadof": threadOf, "runof": runOf, "describe-agent": describeAgent, "kept": kept,
			"served": served,
		},
		Condition: func(condition string) (bool, error) {
			switch condition {
			case "root":
				return os.Getuid() == 0, nil
			case "race":
				return check.Size(0, 1) == 1, nil
			}
			return false, fmt.Errorf("unknown condition %s", condition)
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
			env.Setenv("SMALL", filepath.Join(agent, "small"))
			env.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			env.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
			// An agent that a script builds has the flags of the server: its packages are compiled.
			env.Setenv("GOFLAGS", os.Getenv("GOFLAGS"))
			env.Setenv("CGO_ENABLED", "0")
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, ".config"))
			env.Setenv("GOGC", "300") // the start of a process would collect its garbage twice
			return nil
		},
	})
}

// requestsKey is the key of the counter among a script's values.
type requestsKey struct{}

// buildAgent builds the example once for all scripts, so that no script waits for a build.
func buildAgent(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "weather"), ".")
	build.Dir = filepath.Join("..", "..", "..", "infra", "examples", "weather")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is built without the race detector
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, output)
	}
	describe(t, dir, "./weather")
	check.Must(t, os.Mkdir(filepath.Join(dir, "small"), 0o755))
	describe(t, filepath.Join(dir, "small"), filepath.Join(dir, "weather"))
	return dir
}

// describe makes a directory the directory of an agent.
func describe(t *testing.T, dir, start string) {
	t.Helper()
	config := fmt.Sprintf(`{"graphs": {"agent": "./agent.go:agent"}, "start": %q}`, start)
	check.Must(t, os.WriteFile(filepath.Join(dir, "framework.json"), []byte(config), 0o600))
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

// These ask the background commands to end, with signals that testscript's own kill cannot send.
var terminate, hangup = sends(syscall.SIGTERM), sends(syscall.SIGHUP)

func sends(sig os.Signal) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, _ []string) {
		for _, cmd := range ts.BackgroundCmds() {
			ts.Check(cmd.Process.Signal(sig))
		}
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

// plain checks that outputs move no cursor and have no colour. A terminal ends lines with \r\n.
func plain(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		if text := strings.ReplaceAll(ts.ReadFile(name), "\r\n", "\n"); text == "" || strings.ContainsAny(text, "\x1b\r") {
			ts.Fatalf("%s is empty or not plain: %q", name, text)
		}
	}
}

// ndjson checks that each line of stdout is an event, and that the events named occur in that
// order.
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

// members writes to a file, for each kind of event in stdout, the names of the members that events
// of this kind have: members file. How often a command tells that it waits depends on the machine,
// so these events are left out.
func members(ts *testscript.TestScript, _ bool, args []string) {
	kinds := map[string]map[string]bool{}
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		var event map[string]any
		ts.Check(json.Unmarshal([]byte(line), &event))
		kind := event["event"].(string)
		if kinds[kind] == nil {
			kinds[kind] = map[string]bool{}
		}
		for name := range event {
			kinds[kind][name] = true
		}
	}
	delete(kinds, "waiting")
	var text strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&text, "%s: %s\n", kind, strings.Join(slices.Sorted(maps.Keys(kinds[kind])), " "))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text.String()), 0o600))
}

// keep stores the output of the last command in a variable: keep NAME.
func keep(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSuffix(ts.ReadFile("stdout"), "\n"))
}

// keyid finds the id of the key with a name in a JSON list of keys: keyid VARIABLE name.
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

// credentials sets $KEY and $LISTEN of the server of the directory data, and writes the key to the
// file key.
func credentials(ts *testscript.TestScript, _ bool, _ []string) {
	found, err := standalone.ReadCredentials(dataDirectory(ts))
	ts.Check(err)
	ts.Setenv("KEY", found.APIKey)
	ts.Setenv("LISTEN", strings.TrimPrefix(found.BaseURL, "http://"))
	ts.Check(os.WriteFile(ts.MkAbs("key"), []byte(found.APIKey+"\n"), 0o600))
}

// dataDirectory returns the data directory of a script's server: data, or the default
// directory of servers.
func dataDirectory(ts *testscript.TestScript) string {
	if data := ts.MkAbs("data"); isDirectory(data) {
		return data
	}
	return ts.MkAbs(".slipway")
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// deployed finds the only deployment at the server of the data directory, and sets $NAME, $ID and
// $REVISION of it, and $KEY, $TENANT and $LISTEN of the server.
func deployed(ts *testscript.TestScript, _ bool, _ []string) {
	credentials, err := standalone.ReadCredentials(dataDirectory(ts))
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

// answers sends a request to the server of the directory data: answers status method path key
// [body].
func answers(ts *testscript.TestScript, _ bool, args []string) {
	credentials, err := standalone.ReadCredentials(dataDirectory(ts))
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

// threadID sets $THREAD to the id of the thread that a chat names.
func threadID(ts *testscript.TestScript, _ bool, _ []string) {
	found := regexp.MustCompile(`thread ([0-9a-f-]{36})`).FindStringSubmatch(ts.Getenv("SCREEN"))
	if found == nil {
		ts.Fatalf("the screen names no thread: %q", ts.Getenv("SCREEN"))
	}
	ts.Setenv("THREAD", found[1])
}

// kept checks that the text of the thread's interrupted answer, as the interface returns it,
// equals the text that the screen showed before its mark.
func kept(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(ts.Exec("slipway", "threads", "show", "say", ts.Getenv("THREAD")))
	found := regexp.MustCompile(`(?m)^ai +(I have.*) \[interrupted: incomplete\]$`).FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil || !strings.Contains(ts.Getenv("SCREEN"), found[1]+" [interrupted]") {
		ts.Fatalf("kept is %q; the screen showed %q", found, ts.Getenv("SCREEN"))
	}
}

// threadOf sets $THREAD to the id of the thread of the last command's events.
func threadOf(ts *testscript.TestScript, _ bool, _ []string) {
	found := regexp.MustCompile(`"thread_id":"([^"]+)"`).FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("there is no thread")
	}
	ts.Setenv("THREAD", found[1])
}

// runOf sets $RUN to the id of the first run that the last command lists.
func runOf(ts *testscript.TestScript, _ bool, _ []string) {
	found := regexp.MustCompile(`"run_id": "([^"]+)"`).FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("there is no run")
	}
	ts.Setenv("RUN", found[1])
}

// describeAgent makes a directory the directory of the agent that answers with the content of
// the file words.
func describeAgent(ts *testscript.TestScript, _ bool, args []string) {
	program, err := exec.LookPath("sayagent")
	ts.Check(err)
	config := fmt.Sprintf(`{"graphs": {"agent": "a:b"}, "start": %q}`, program)
	ts.Check(os.WriteFile(filepath.Join(ts.MkAbs(args[0]), "framework.json"), []byte(config), 0o600))
}

// slipwayPath sets $SLIPWAY to the program, for scripts that change $PATH.
func slipwayPath(ts *testscript.TestScript, _ bool, _ []string) {
	path, err := exec.LookPath("slipway")
	ts.Check(err)
	ts.Setenv("SLIPWAY", path)
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"anything else":   {errors.New("revision is BUILD_FAILED"), 1},
		"server error":    {&client.APIError{Status: 500}, 1},
		"usage":           {exit.Usage(errors.New("unknown flag")), 2},
		"AWS credentials": {explain(&smithy.GenericAPIError{Code: "AccessDeniedException"}), 4},
		"AWS":             {explain(&smithy.GenericAPIError{Code: "ResourceNotFoundException"}), 1},
		"a bad name":      {explain(fault.New(fault.Invalid, "x")), 2},
		"a taken name":    {explain(fault.New(fault.Conflict, "x")), 1},
		"bad key":         {&client.APIError{Status: 401}, 4},
		"other tenant":    {&client.APIError{Status: 403}, 4},
		"still going on":  {&exit.TimeoutError{}, 8},
		"Ctrl-C":          {exit.ErrInterrupted, 130},
	} {
		if got := exit.Code(errors.Join(fmt.Errorf("demo: %w", c.err), nil)); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

// served serves the repositories below the script's directory over HTTP, and sets $GIT to the
// address: deployments of a file:// repository cannot build pushes.
func served(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: served")
	}
	libexec, err := exec.Command("git", "--exec-path").Output()
	ts.Check(err)
	server := httptest.NewServer(&cgi.Handler{
		Stderr: os.Stderr, Path: filepath.Join(strings.TrimSpace(string(libexec)), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + ts.MkAbs("."), "GIT_HTTP_EXPORT_ALL=1"},
	})
	ts.Defer(server.Close)
	ts.Setenv("GIT", server.URL)
}

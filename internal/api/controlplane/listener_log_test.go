package controlplane_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/sse"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
	"github.com/slipway-run/slipway/internal/test/check"
)

// Rules about the output of agents at listeners.
const (
	outputKept = "Listeners: what is handed in with `logs` is read, searched and followed as any agent's log, without the deployment's secrets and the agent's token, which are not " +
		"kept either; a call that is repeated with its `Idempotency-Key` adds its lines once."
	reportShown   = "Listeners: the message of a report is kept and shown, in revisions, explanations, events and webhooks, without the deployment's secrets and the agent's token."
	outputRefused = "Listeners: `logs` of a session that is over, or of a release that is not the listener's any more, are a 409, more than 512 KiB a 400, lines of the wrong shape a 422, " +
		"more than 2 MiB at once and 64 KiB per second a 429 with `Retry-After`."
)

// TestAnAgentAtAListenerHasALog sends lines while a client follows them, until the agent is
// removed.
func TestAnAgentAtAListenerHasALog(t *testing.T) {
	t.Parallel()
	rule(t, outputKept)
	f := setUpRollouts(t, func(store *deployment.Config, config *controlplane.Config) {
		config.Answers = idempotency.NewStore(store.Table, store.Sealer, clock.System)
	})
	path, created := f.createListener(t, newListener("cluster", "agents"))
	body := with(fromImage("weather"), "source_config.listener_id", created.id("id"))
	body["secrets"] = []any{object{"name": "TOKEN", "value": "open-sesame"}}
	deploymentPath, d := f.create(t, body)
	revision := d.id("latest_revision_id")
	claim := f.call(t, "POST", path+"/claim", object{"holder": "a"})
	s := &listenerStage{fixture: f, path: path, session: claim.member("session"), work: workOf(t, claim)[0]}
	token := fmt.Sprint(s.work["release"].(object)["env"].(object)["SLIPWAY_INVOKE_TOKEN"])
	logs := deploymentPath + "/revisions/" + revision + "/logs?type=deploy"
	hand := func(key string, lines ...string) {
		t.Helper()
		wantStatus(t, f.send(t, "POST", path+"/logs", s.output(lines...), f.own.with("Idempotency-Key", key)), http.StatusNoContent)
	}
	hand("1", "INFO the graph is loaded", "", "the word is open-sesame", "ERROR and "+token)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.URL+logs, http.NoBody)
	check.Must(t, err)
	for name, value := range f.own.with("Accept", "text/event-stream") {
		request.Header.Set(name, value)
	}
	stream, err := f.Client().Do(request)
	check.Must(t, err)
	defer stream.Body.Close()
	events := sse.NewReader(stream.Body, 1<<20)
	follow := func(want ...string) {
		t.Helper()
		for _, words := range want {
			if event, err := events.Next(); err != nil || !strings.Contains(string(event.Data), words) {
				t.Fatalf("got %s %s (%v), want %s", event.Name, event.Data, err, words)
			}
		}
	}
	follow(`"message":"INFO the graph is loaded"`, `"message":""`, `"message":"the word is ***"`, `"level":"ERROR","message":"ERROR and ***"`)
	wantStatus(t, f.call(t, "POST", path+"/report", s.report(1, "healthy", "url", "https://agents.test/a")), http.StatusNoContent)
	if got := f.await(t, deploymentPath, revision); got != "DEPLOYED" {
		t.Fatalf("the revision is %s", got)
	}
	for i := range 20 {
		hand(fmt.Sprint("line ", i), fmt.Sprint("line ", i))
		// The answer to the first request was lost.
		hand(fmt.Sprint("line ", i), fmt.Sprint("line ", i))
		follow(fmt.Sprintf(`"message":"line %d"`, i))
	}
	if got := f.call(t, "GET", logs+"&level=ERROR", nil); printed(got, "logs") != "ERROR and ***" {
		t.Errorf("got %s", got.text)
	}
	if got := f.call(t, "GET", "/v2/deployment-logs?page_size=2&deployment_id="+d.id("id"), nil); printed(got, "items") != "line 19, line 18" {
		t.Errorf("got %s", got.text)
	}
	for _, secret := range []string{"open-sesame", token} {
		if file := f.kept(t, secret); file != "" {
			t.Errorf("%s is in %s", secret, file)
		}
	}
	if f.kept(t, "line 19") == "" {
		t.Error("the lines are nowhere")
	}
}

// TestAReportShowsNoSecret has a listener report the last output of an agent that names its
// secrets, and looks for them in all answers that tell of it.
func TestAReportShowsNoSecret(t *testing.T) {
	t.Parallel()
	rule(t, reportShown)
	f := setUpRollouts(t, func(*deployment.Config, *controlplane.Config) {})
	path, created := f.createListener(t, newListener("cluster", "agents"))
	body := with(fromImage("weather"), "source_config.listener_id", created.id("id"))
	body["secrets"] = []any{object{"name": "TOKEN", "value": "open-sesame"}}
	deploymentPath, d := f.create(t, body)
	revision := d.id("latest_revision_id")
	claim := f.call(t, "POST", path+"/claim", object{"holder": "a"})
	s := &listenerStage{fixture: f, path: path, session: claim.member("session"), work: workOf(t, claim)[0]}
	token := fmt.Sprint(s.work["release"].(object)["env"].(object)["SLIPWAY_INVOKE_TOKEN"])
	message := "its last output: cannot use open-sesame\nnor " + token
	wantStatus(t, f.call(t, "POST", path+"/report", s.report(1, "failed", "reason", "START_FAILED", "message", message)), http.StatusNoContent)
	if got := f.await(t, deploymentPath, revision); got != "DEPLOY_FAILED" {
		t.Fatalf("the revision is %s", got)
	}
	of := deploymentPath + "/revisions/" + revision
	for _, at := range []string{of, of + "/explanation", deploymentPath + "/events", path + "/diagnostics"} {
		got := f.call(t, "GET", at, nil)
		wantStatus(t, got, http.StatusOK)
		if text := string(got.text); strings.Contains(text, "open-sesame") || strings.Contains(text, token) {
			t.Errorf("%s shows a secret: %s", at, text)
		}
	}
	if got := f.call(t, "GET", of, nil).id("status_message"); !strings.Contains(got, "its last output: cannot use ***\nnor ***") {
		t.Errorf("got %q", got)
	}
}

// kept is the file of a log that holds a text, "" if no file holds it.
func (f *fixture) kept(t *testing.T, text string) (found string) {
	t.Helper()
	err := filepath.WalkDir(f.logDir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), text) {
			found = path
		}
		return err
	})
	check.Must(t, err)
	return found
}

func TestOutputThatIsRefused(t *testing.T) {
	t.Parallel()
	rule(t, outputRefused)
	s := setUp(t).listenerStage(t)
	path := s.path + "/logs"
	for name, c := range map[string]struct {
		body object
		want problem
	}{
		"no lines":           {with(s.output(), "lines", nil), problem{"body.lines", "list_type"}},
		"none":               {with(s.output(), "lines", []any{}), problem{"body.lines", "too_short"}},
		"too many":           {s.output(slices.Repeat([]string{""}, 1001)...), problem{"body.lines", "too_long"}},
		"a number":           {with(s.output(), "lines", []any{1}), problem{"body.lines.0", "string_type"}},
		"two lines in one":   {s.output("a\nb"), problem{"body.lines.0", "string_pattern_mismatch"}},
		"a line too long":    {s.output(strings.Repeat("x", 32769)), problem{"body.lines.0", "string_too_long"}},
		"no such revision":   {with(s.output("x"), "revision_id", "x"), problem{"body.revision_id", "uuid_parsing"}},
		"nobody's output":    {omit(s.output("x"), "session"), problem{"body.session", "missing"}},
		"a deployment's too": {omit(s.output("x"), "deployment_id"), problem{"body.deployment_id", "missing"}},
	} {
		if got := problems(t, s.call(t, "POST", path, c.body)); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	large := slices.Repeat([]string{strings.Repeat("x", 32000)}, 16)
	wantDetail(t, s.call(t, "POST", path, s.output(append(large, large[0])...)), http.StatusBadRequest,
		"lines may have 524288 bytes together, and each counts 32 more.")
	wantDetail(t, s.call(t, "POST", path, with(s.output("x"), "revision_id", unknownID)), http.StatusConflict,
		"Revision ID "+unknownID+" does not run at this listener, or does no longer.")
	for range 4 {
		wantStatus(t, s.call(t, "POST", path, s.output(large...)), http.StatusNoContent)
	}
	refused := s.call(t, "POST", path, s.output(large...))
	// Meanwhile the allowance of a second or more was added.
	for refused.StatusCode == http.StatusNoContent {
		refused = s.call(t, "POST", path, s.output(large...))
	}
	wantStatus(t, refused, http.StatusTooManyRequests)
	if refused.Header.Get("Retry-After") == "" {
		t.Errorf("got %v", refused.Header)
	}
	if again := s.call(t, "POST", path, s.output("x")); again.StatusCode != http.StatusNoContent && again.StatusCode != http.StatusTooManyRequests {
		t.Errorf("got %s", again.text)
	}
	wantStatus(t, s.call(t, "POST", s.path+"/claim", object{"holder": "a", "wait": 0}), http.StatusOK)
}

package lambdahost_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

const eightNULs = "\x00\x00\x00\x00\x00\x00\x00\x00"

// at is the event of a GET.
func at(path string) string {
	text, err := json.Marshal(map[string]any{"path": path, "httpMethod": "GET", "requestContext": map[string]any{"stage": "v"}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// TestStreamedResponses reads the post of the function to the Runtime API: the part before the
// body, the body, and the error that it may end with.
func TestStreamedResponses(t *testing.T) {
	t.Parallel()
	api := self(t, "streaming")
	for _, c := range []struct {
		path, status, header, body, failure string
	}{
		{"/echo", `"statusCode":200`, `"Set-Cookie":["a=1","b=2"]`, "hello", ""},
		{"/refused", `"statusCode":418`, `"X-Request-Id":["` + invocationID + `"]`, "no\n", ""},
		{"/missing", `"statusCode":404`, `"Content-Type":["application/json"]`, `{"detail":"Not Found"}`, ""},
		{"/panic", `"statusCode":500`, `"X-Request-Id"`, `{"detail":"Internal server error (request ` + invocationID + `)."}`, ""},
		{"/panic-late", `"statusCode":200`, `"X-Request-Id"`, "half", "ResponseCutShort"},
		// The process has survived all of them.
		{"/echo", `"statusCode":200`, `"Set-Cookie":["a=1","b=2"]`, "hello", ""},
	} {
		answer := api.invoke(at(c.path), time.Minute)
		prelude, body, found := strings.Cut(answer.rest(t), eightNULs)
		if !found || answer.isError || answer.contentType != "application/vnd.awslambda.http-integration-response" {
			t.Errorf("%s: got %q as %s", c.path, prelude, answer.contentType)
		}
		if !strings.Contains(prelude, c.status) || !strings.Contains(prelude, c.header) || body != c.body {
			t.Errorf("%s: got %s and %q", c.path, prelude, body)
		}
		kind, text := answer.failure(t)
		if kind != c.failure || strings.Contains(text, "secret") || (kind != "") != strings.Contains(text, "ended early") {
			t.Errorf("%s: ended with the error %q %s", c.path, kind, text)
		}
	}
}

func TestAnEventThatIsNoRequestIsRefusedByAStream(t *testing.T) {
	t.Parallel()
	api := self(t, "streaming")
	answer := api.invoke(`{"path": "/echo", "httpMethod": "GET", "body": "%", "isBase64Encoded": true}`, time.Minute)
	if got := answer.rest(t); !strings.Contains(got, `"statusCode":400`) || !strings.Contains(got, `"application/json"`) {
		t.Errorf("got %q", got)
	}
}

// TestACallWithoutARequest: API Gateway was seen to call a function again when a stream had ended,
// with how it ended.
func TestACallWithoutARequest(t *testing.T) {
	t.Parallel()
	api := self(t, "streaming")
	answer := api.invoke(`{"invokeCompletionStatus": "Success", "requestId": "a5f1"}`, time.Minute)
	if got := answer.rest(t); !strings.Contains(got, `"statusCode":404`) {
		t.Errorf("got %q", got)
	}
}

// TestEachWriteArrivesAtOnce reads an event of a stream that does not end by itself, long
// before its function has to end it.
func TestEachWriteArrivesAtOnce(t *testing.T) {
	t.Parallel()
	for path, text := range map[string]string{"/stream": "id: 1\n\n", "/await": eightNULs + "\n"} {
		began := time.Now()
		answer := self(t, "streaming").invoke(at(path), 3*patience)
		answer.until(t, text)
		if took := time.Since(began); took > 2*patience {
			t.Errorf("%s: the first byte took %v", path, took)
		}
		close(answer.done)
	}
}

// TestAStreamEndsBeforeItsFunctionDoes has an invocation that is too short for the stream. The
// end is an error: a client takes a normal end for the end of the run.
func TestAStreamEndsBeforeItsFunctionDoes(t *testing.T) {
	t.Parallel()
	for path, all := range map[string]string{"/stream": "event: first\ndata: {}\nid: 1\n\n", "/await": "\n"} {
		api := self(t, "streaming")
		began := time.Now()
		answer := api.invoke(at(path), 4*time.Second)
		got := answer.rest(t)
		if took := time.Since(began); took < time.Second {
			t.Errorf("%s: ended after %v of 4s", path, took)
		}
		if _, body, _ := strings.Cut(got, eightNULs); strings.TrimLeft(body, "\n") != strings.TrimLeft(all, "\n") {
			t.Errorf("%s: got %q", path, body)
		}
		if kind, _ := answer.failure(t); kind != "ResponseCutShort" {
			t.Errorf("%s: ended with the error %q", path, kind)
		}
		// At the deadline itself, the platform kills the function.
		if said := api.output.String(); !strings.Contains(said, "longer than one request may last") || strings.Contains(said, context.DeadlineExceeded.Error()) {
			t.Errorf("%s: was not ended before the deadline", path)
		}
	}
}

// TestAStreamThatCanBeTakenUpEndsEarly has an invocation of a minute and a stream that may last a
// millisecond. Other streams and waits last as long as their invocation.
func TestAStreamThatCanBeTakenUpEndsEarly(t *testing.T) {
	t.Parallel()
	api := self(t, "briefly")
	answer := api.invoke(at("/stream-again"), time.Hour) // the test would not wait for its end
	if _, body, _ := strings.Cut(answer.rest(t), eightNULs); body != "event: first\ndata: {}\nid: 1\n\n" {
		t.Errorf("got %q", body)
	}
	if kind, _ := answer.failure(t); kind != "ResponseCutShort" {
		t.Errorf("ended with the error %q", kind)
	}
	for _, path := range []string{"/stream", "/await"} {
		began := time.Now()
		api.invoke(at(path), 4*time.Second).rest(t)
		if took := time.Since(began); took < time.Second {
			t.Errorf("%s: ended after %v of 4s", path, took)
		}
	}
}

// TestAWaitThatHasNotBegunIsUnavailable has a wait whose time is over before any byte was sent.
func TestAWaitThatHasNotBegunIsUnavailable(t *testing.T) {
	t.Parallel()
	answer := self(t, "streaming").invoke(at("/await-silently"), 4*time.Second)
	if got := answer.rest(t); !strings.Contains(got, `"statusCode":503`) || !strings.Contains(got, "Retry-After") {
		t.Errorf("got %q", got)
	}
}

// TestAResponseThatNobodyReadsEnds answers before the body's end, as the platform may when the
// client has gone: the handler's next write fails, the function goes on with the next invocation.
func TestAResponseThatNobodyReadsEnds(t *testing.T) {
	t.Parallel()
	ended := filepath.Join(t.TempDir(), "ended")
	api := self(t, "streaming", variableEnded+"="+ended)
	answer := api.invoke(at("/flood"), time.Minute)
	answer.until(t, eightNULs)
	close(answer.done)
	if got := api.invoke(at("/echo"), time.Minute).rest(t); !strings.HasSuffix(got, "hello") {
		t.Errorf("got %q", got)
	}
	if _, err := os.Stat(ended); err != nil {
		t.Errorf("the next invocation came before the handler had ended: %v", err)
	}
}

// TestAStreamIsClosedByItsReader closes a response that was not read at all.
func TestAStreamIsClosedByItsReader(t *testing.T) {
	t.Parallel()
	log, _ := newLog()
	ended := false
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { ended = true }()
		if _, err := w.Write([]byte("text")); err == nil {
			t.Error("somebody took it")
		}
		<-r.Context().Done()
	})
	answer, err := lambdahost.Streaming(handler, log, time.Hour)(invocation(t, time.Minute), event(t, ""))
	check.Must(t, err)
	if err := answer.Close(); err != nil || !ended {
		t.Errorf("closed with %v before the handler had ended", err)
	}
}

// TestStreamsOfAThreadEndEarly has streams that may last a millisecond of an invocation of an hour:
// that of the thread-centric protocol, which clients take up with another POST, and that of a
// client that follows a thread.
func TestStreamsOfAThreadEndEarly(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	key, tb := fixtures.Key(t), fixtures.Table(t)
	deployments := deployment.NewStore(deployment.Config{Table: tb, Workflow: idle{}, Sealer: key, Now: clock.System, Log: log})
	repository, branch, file, kind := "https://git.test/team/agent", "main", "framework.json", "dev"
	d, err := deployments.Create(t.Context(), deployment.NewDeployment{
		Workspace: workspace, Name: "weather", Source: revision.GitHub,
		SourceConfig: deployment.SourceConfig{RepoURL: &repository, DeploymentType: &kind}, RevisionConfig: revision.Config{RepoRef: &branch, ConfigPath: &file},
	})
	check.Must(t, err)
	threads := thread.NewStore(tb, clock.System, quota.Limits{}, log)
	made, err := threads.Create(t.Context(), thread.Ref{Workspace: workspace, Deployment: d.Deployment}, nil, nil, false)
	check.Must(t, err)
	mux := web.NewMux(log)
	check.Must(t, agentserver.Register(mux, agentserver.Config{
		Deployments: deployments, Assistants: assistant.NewStore(tb, clock.System), Threads: threads, Authenticator: lambdahost.Gateway{},
		Runs: run.NewStore(run.Config{Table: tb, Threads: threads, Workflow: idle{}, Now: clock.System}), Unnoticed: lambdahost.Unnoticed,
	}))
	at := "/d/" + d.Deployment + "/threads/" + made.Thread + "/stream"
	for path, method := range map[string]string{at + "/events": "POST", at: "GET"} {
		members, err := json.Marshal(map[string]any{
			"httpMethod": method, "path": path, "body": `{"channels": ["lifecycle"]}`,
			"multiValueHeaders": map[string][]string{"Content-Type": {"application/json"}},
			"requestContext":    map[string]any{"path": "/v" + path, "authorizer": map[string]any{"workspace": workspace, "role": "admin"}},
		})
		check.Must(t, err)
		answer, err := lambdahost.Streaming(mux, log, time.Millisecond)(invocation(t, time.Hour), event(t, string(members)))
		check.Must(t, err)
		defer time.AfterFunc(patience, func() { _ = answer.Close() }).Stop()
		if text, err := io.ReadAll(answer); answer.StatusCode != http.StatusOK || err == nil || !strings.Contains(err.Error(), "ended early") {
			t.Errorf("%s: got %d %s, %v", path, answer.StatusCode, text, err)
		}
		check.Must(t, answer.Close())
	}
}

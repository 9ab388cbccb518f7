package lambdahost_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/host/lambdahost"
)

// TestAHandlerKnowsTheClientsConnection checks the members of a request that a proxy makes its
// X-Forwarded-For and X-Forwarded-Proto of, and a query whose names have no order in the event.
func TestAHandlerKnowsTheClientsConnection(t *testing.T) {
	t.Parallel()
	for event, want := range map[string]string{
		`{"requestContext": {"identity": {"sourceIp": "203.0.113.7"}}}`:                                                                          "203.0.113.7:0 true ",
		`{"requestContext": {"identity": {"sourceIp": "2001:db8::1"}}, "multiValueHeaders": {"X-Forwarded-Proto": ["http"]}}`:                    "[2001:db8::1]:0 false ",
		`{"requestContext": {"identity": {"sourceIp": "::1"}}, "multiValueQueryStringParameters": {"b": ["2", "1"], "a": ["/"], "c": ["", ""]}}`: "[::1]:0 true a=%2F&b=2&b=1&c=&c=",
	} {
		for range 5 {
			got := ""
			answer, _ := call(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r.RemoteAddr + " " + map[bool]string{true: "true", false: "false"}[r.TLS != nil] + " " + r.URL.RawQuery
				w.WriteHeader(http.StatusNoContent)
			}), event)
			if got != want || answer.StatusCode != http.StatusNoContent {
				t.Errorf("%s: the handler sees %q, want %q", event, got, want)
			}
		}
	}
}

// TestAttackAnEndlessAnswer has a handler write until it fails: a function that does not stream
// keeps no more of it than it could send, and says so.
func TestAttackAnEndlessAnswer(t *testing.T) {
	t.Parallel()
	wrote := 0
	answer, _ := call(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for part := make([]byte, 1<<20); wrote < 1<<30; wrote += len(part) {
			if _, err := w.Write(part); err != nil {
				panic(http.ErrAbortHandler) // as a proxy does
			}
		}
	}), ``)
	if answer.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(answer.Body, "larger than 6 MB") || wrote > 8<<20 {
		t.Errorf("after %d bytes: got %s", wrote, show(answer))
	}
}

// TestPreflightsNeedNoCredentials: only OPTIONS passes without a caller, on all routes.
func TestPreflightsNeedNoCredentials(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{agentServer, controlPlane} {
		for method, want := range map[string]bool{"OPTIONS": true, "GET": false, "options": false} {
			log, _ := newLog()
			asked := question(t, `{"Origin": ["https://a.test"], "Access-Control-Request-Method": ["POST"]}`, resource)
			asked.HTTPMethod, asked.PathParameters = method, map[string]string{"deployment_id": withNone}
			deployments := kinds()
			answer, err := lambdahost.Authorizer(&keys{}, nil, deployments, time.Now, log)(invocation(t, time.Minute), asked)
			if (err == nil) != want || len(answer.Context) > 0 || (want && deployments.asked > 0) {
				t.Errorf("%s %s: got %+v, %v", method, resource, answer, err)
			}
		}
	}
}

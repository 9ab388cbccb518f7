package agentserver_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// refusing returns an agent in front of another agent. It refuses each invocation in which the word
// "poison" is, with the status 422.
func refusing(t *testing.T, agent compute.Endpoint) compute.Endpoint {
	t.Helper()
	address, err := url.Parse(agent.URL)
	check.Must(t, err)
	pass := httputil.NewSingleHostReverseProxy(address)
	pass.FlushInterval = -1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, err := io.ReadAll(r.Body)
		if err != nil || bytes.Contains(asked, []byte("poison")) {
			http.Error(w, "the input is not readable", http.StatusUnprocessableEntity)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(asked))
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return compute.Endpoint{URL: server.URL, Token: agent.Token}
}

// agreeing answers each run with one message.
func agreeing(_ context.Context, invocation graph.Invocation, emit func(string, any)) error {
	emit(graph.EventUpdates, object{"model": object{"messages": []any{message("ai", invocation.RunID, "yes")}}})
	return nil
}

// TestARefusedInputLeavesTheThread checks that an agent gets an input that it has refused with no
// later run, and that the thread goes on from the state before this input.
func TestARefusedInputLeavesTheThread(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) compute.Endpoint{
		"of an agent that keeps checkpoints":   func(t *testing.T) compute.Endpoint { return graphtest.StartKeeper(t) },
		"of an agent that keeps no checkpoint": func(t *testing.T) compute.Endpoint { return graphtest.Start(t, agreeing) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUpAt(t, refusing(t, start(t)), 0)
			f.deploy(t, "agent")
			thread := f.newThread(t)
			wait := func(text string) response {
				asked := f.call(t, "POST", thread+"/runs/wait", plan(text, says("model", "yes")))
				wantStatus(t, asked, http.StatusOK)
				return asked
			}
			wantTakenBack := func(want ...string) {
				t.Helper()
				if got := wait("poison"); got.string("__error__", "error") != "AgentRefused" {
					t.Errorf("the run with the input that is refused ends with %s", got.text)
				}
				if diff := cmp.Diff(append([]string{}, want...), append([]string{}, f.texts(t, thread)...)); diff != "" {
					t.Errorf("messages after the refusal (-want +got):\n%s", diff)
				}
			}
			wantTakenBack()
			first := wait("one")
			if first.member("__error__") != nil {
				t.Fatalf("the next run fails: %s", first.text)
			}
			before := f.texts(t, thread)
			wantTakenBack(before...)
			wantTakenBack(before...)
			if second := wait("two"); second.member("__error__") != nil {
				t.Fatalf("a later run fails: %s", second.text)
			}
			want := append(append([]string{}, before...), "two", before[1])
			if diff := cmp.Diff(want, f.texts(t, thread)); diff != "" {
				t.Errorf("messages at the end (-want +got):\n%s", diff)
			}
		})
	}
}

package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestInvokeSendsTheContract(t *testing.T) {
	t.Parallel()
	var headers http.Header
	var body map[string]any
	endpoint := serve(t, func(w http.ResponseWriter, r *http.Request) {
		headers = r.Header
		if got, want := r.Method+" "+r.URL.Path, "POST /invocations"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
	})
	endpoint.Token = "secret"
	stream := invoke(t, endpoint, graph.Invocation{
		Graph: "agent", RunID: runID, ThreadID: "t1", Attempt: 2, StreamMode: []string{"updates"},
		State: graph.State{Values: json.RawMessage(`{"messages":[]}`)},
	})
	if events, err := readAll(stream); len(events) != 0 || err != nil {
		t.Errorf("got %v, %v from an empty stream, want nothing", events, err)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer secret", "Content-Type": "application/json", "Accept": "text/event-stream, application/json",
	} {
		if got := headers.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if got, want := headers.Get("Traceparent"), regexp.MustCompile(`^00-0192f3a411117abc8def0123456789ab-[0-9a-f]{16}-01$`); !want.MatchString(got) {
		t.Errorf("traceparent: got %q, want %s", got, want)
	}
	want := map[string]any{
		"graph": "agent", "run_id": runID, "thread_id": "t1", "attempt": 2.0, "stream_mode": []any{"updates"},
		"state": map[string]any{"values": map[string]any{"messages": []any{}}, "checkpoint": nil, "pending": nil},
		"input": nil, "command": nil, "config": nil, "context": nil,
	}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

func TestTraceparentIsLeftOutForARunIDThatIsNoUUID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "run-1", runID + "0", strings.Repeat("z", 32)} {
		var got []string
		endpoint := serve(t, func(w http.ResponseWriter, r *http.Request) {
			got = r.Header["Traceparent"]
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{}`)
		})
		invoke(t, endpoint, graph.Invocation{Graph: "agent", RunID: id})
		if got != nil {
			t.Errorf("run id %q: got traceparent %q, want none", id, got)
		}
	}
}

func TestAJSONAnswerIsOneUpdateOfTheGraph(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		media, body string
		want        []graph.Event
		wantKind    string
	}{
		{"application/json", ` {"messages": []} `, []graph.Event{event("updates", `{"agent":{"messages":[]}}`)}, "none"},
		{"Application/JSON; charset=utf-8", `null`, []graph.Event{event("updates", `{"agent":null}`)}, "none"},
		{"application/json", `{"messages":`, nil, "protocol"},
		{"application/json", ``, nil, "protocol"},
		{"application/json", strings.Repeat(" ", graph.MaxEventBytes) + "1", nil, "protocol"},
	} {
		endpoint := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.media)
			io.WriteString(w, c.body)
		})
		got, err := readAll(invoke(t, endpoint, graph.Invocation{Graph: "agent"}))
		if diff := cmp.Diff(c.want, got); diff != "" || kind(err) != c.wantKind {
			t.Errorf("%.20q: got %v, want %s (-want +got):\n%s", c.body, err, c.wantKind, diff)
		}
	}
}

func TestStatusesAreErrorsOfAKind(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		302: "refused", 400: "refused", 401: "refused", 404: "refused", 412: "refused", 422: "refused", 500: "refused",
		408: "unavailable", 425: "unavailable", 429: "unavailable",
		502: "unavailable", 503: "unavailable", 504: "unavailable",
	} {
		endpoint := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			io.WriteString(w, "because of \xff this\n")
		})
		_, err := newClient(t).Invoke(t.Context(), endpoint, graph.Invocation{Graph: "agent"})
		if got := kind(err); got != want {
			t.Errorf("status %d: got %s, want %s", status, got, want)
		}
		if err == nil || !strings.Contains(err.Error(), "because of \uFFFD this") {
			t.Errorf("status %d: got %v, want the body in it", status, err)
		}
		if refused, ok := errors.AsType[*graph.RefusedError](err); ok && refused.Status != status {
			t.Errorf("got status %d, want %d", refused.Status, status)
		}
	}
}

func TestAnUnknownMediaTypeBreaksTheContract(t *testing.T) {
	t.Parallel()
	endpoint := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<p>Hello</p>") })
	_, err := newClient(t).Invoke(t.Context(), endpoint, graph.Invocation{Graph: "agent"})
	if got, want := kind(err), "protocol"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestAttackHeadersWithoutEnd has an agent whose headers take more memory than its answer may.
func TestAttackHeadersWithoutEnd(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]string{32 << 10: "none", 1 << 20: "unavailable"} {
		endpoint := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Large", strings.Repeat("x", size))
			io.WriteString(w, `{"graphs":{}}`)
		})
		if _, err := newClient(t).Describe(t.Context(), endpoint, graph.Invocation{Operation: graph.OperationDescribe}, nil); kind(err) != want {
			t.Errorf("headers of %d bytes: got %v, want %s", size, err, want)
		}
	}
}

func TestAnAgentThatIsNotThereIsUnavailable(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	endpoint := compute.Endpoint{URL: "http://" + listener.Addr().String()}
	check.Must(t, listener.Close())
	_, err = newClient(t).Invoke(t.Context(), endpoint, graph.Invocation{Graph: "agent"})
	if got, want := kind(err), "absent"; got != want {
		t.Errorf("invoke: got %s, want %s", got, want)
	}
	nameless := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}
	}}
	_, err = graph.NewClient(nameless).Invoke(t.Context(), endpoint, graph.Invocation{Graph: "agent"})
	if got, want := kind(err), "absent"; got != want {
		t.Errorf("a name that is not known: got %s, want %s", got, want)
	}
}

// TestABalancerAnswersForAnAbsentAgent checks that its answers are told from those of an agent.
func TestABalancerAnswersForAnAbsentAgent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server string
		status int
		want   string
	}{
		{"awselb/2.0", 503, "absent"},
		{"awselb/2.0", 502, "absent, or it may have begun"},
		{"awselb/2.0", 504, "absent, or it may have begun"},
		{"awselb/2.0", 429, "unavailable"},
		{"awselb/2.0", 400, "refused"},
		{"uvicorn", 503, "unavailable"},
		{"", 503, "unavailable"},
	} {
		endpoint := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Server", c.server)
			w.WriteHeader(c.status)
		})
		_, err := newClient(t).Invoke(t.Context(), endpoint, graph.Invocation{Graph: "agent"})
		if got := kind(err); got != c.want {
			t.Errorf("%d by %q: got %s, want %s", c.status, c.server, got, c.want)
		}
	}
}

func TestTheContextStopsAnInvocationThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	arrived, stopped := make(chan struct{}), make(chan struct{})
	endpoint := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		close(arrived)
		<-r.Context().Done()
		close(stopped)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := newClient(t).Invoke(ctx, endpoint, graph.Invocation{Graph: "agent"})
	if !errors.Is(err, context.Canceled) || kind(err) == "unavailable" {
		t.Errorf("got %v, want the context's error", err)
	}
	await(t, stopped, "the agent learns that nobody waits")
}

func TestConnectionsAreKeptOpen(t *testing.T) {
	t.Parallel()
	endpoint := graphtest.Start(t, nil)
	var opened atomic.Int32
	transport := graph.NewTransport()
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		opened.Add(1)
		return dial(ctx, network, address)
	}
	t.Cleanup(transport.CloseIdleConnections)
	client := graph.NewClient(transport)
	for range 5 {
		stream, err := client.Invoke(t.Context(), endpoint, graph.Invocation{Graph: "agent"})
		check.Must(t, err)
		if _, err := readAll(stream); err != nil {
			t.Fatal(err)
		}
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := opened.Load(); got != 1 {
		t.Errorf("got %d connections for 5 invocations, want 1", got)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	got, err := newClient(t).Describe(t.Context(), graphtest.Start(t, nil), graph.Invocation{Operation: graph.OperationDescribe}, nil)
	check.Must(t, err)
	if _, ok := got.Graphs["agent"]; !ok || len(got.Graphs) != 1 {
		t.Errorf("got %v, want the graph agent", got.Graphs)
	}
}

// await waits for an event that must happen soon.
func await(t *testing.T, happened <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(time.Minute):
		t.Fatalf("waited in vain: %s", what)
	}
}

// TestCipher asks an agent that answers as the contract says, and agents that do not.
func TestCipher(t *testing.T) {
	t.Parallel()
	status, answer := http.StatusOK, `{"values": ["AAH/", ""], "context": {"tenant": "a"}}`
	var asked graph.Invocation
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &asked)
		}
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer agent.Close()
	ask := func() (graph.Ciphered, error) {
		return graph.NewClient(nil).Cipher(t.Context(), compute.Endpoint{URL: agent.URL}, graph.OperationEncrypt, graph.Encryption{
			User: json.RawMessage(`{"identity":"ada"}`), Values: []graph.EncryptedValue{{Model: "run", Field: "kwargs", JSON: true, Data: []byte("{}")}, {Data: []byte{0}}},
		}, nil)
	}
	got, err := ask()
	if err != nil || string(got.Values[0]) != "\x00\x01\xff" || len(got.Values[1]) != 0 || string(got.Context) != `{"tenant": "a"}` {
		t.Errorf("got %+v, %v", got, err)
	}
	if asked.Operation != graph.OperationEncrypt || string(asked.Encryption.Values[0].Data) != "{}" || string(asked.Encryption.User) != `{"identity":"ada"}` {
		t.Errorf("asked %+v", asked.Encryption)
	}
	for _, wrong := range []string{`{"values": [""]}`, `{"values": [1, 2]}`, `{}`, `[]`, ``} {
		answer = wrong
		if _, err := ask(); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
	status = http.StatusInternalServerError
	if _, err := ask(); err == nil {
		t.Error("a failure is taken")
	} else if _, refused := errors.AsType[*graph.RefusedError](err); !refused {
		t.Errorf("got %v", err)
	}
}

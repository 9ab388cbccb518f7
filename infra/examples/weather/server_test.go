package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const fast = `{"node_delay_ms":0,"token_delay_ms":0}`

// start serves the agent for the time of the test.
func start(t *testing.T, token string) string {
	t.Helper()
	server := httptest.NewServer(newServer(token, time.Now))
	t.Cleanup(server.Close)
	return server.URL
}

// event is one event of a stream as a test reads it.
type event struct {
	name string
	data json.RawMessage
}

// readEvents reads a stream to its end.
func readEvents(t *testing.T, stream io.Reader) []event {
	t.Helper()
	text, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	var events []event
	if len(text) == 0 {
		return nil
	}
	for _, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		name, data, ok := strings.Cut(strings.TrimPrefix(block, "event: "), "\ndata: ")
		if !ok || !json.Valid([]byte(data)) {
			t.Fatalf("not an event: %q", block)
		}
		events = append(events, event{name, json.RawMessage(data)})
	}
	return events
}

func TestTokenIsRequired(t *testing.T) {
	t.Parallel()
	url := start(t, "secret")
	for token, want := range map[string]int{"": 401, "wrong": 401, "secre": 401, "secret": 200} {
		if got := post(t, url, token, body("sf", fast)).StatusCode; got != want {
			t.Errorf("token %q: got status %d, want %d", token, got, want)
		}
	}
	if got := post(t, start(t, ""), "anything", body("sf", fast)).StatusCode; got != 200 {
		t.Errorf("without a token in the environment: got status %d, want 200", got)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	url := start(t, "")
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"malformed":         {`{"graph": "agent"`, 400},
		"empty":             {``, 400},
		"wrong type":        {`{"graph": 7}`, 400},
		"unknown operation": {`{"graph": "agent", "operation": "fly"}`, 400},
		"unknown graph":     {`{"graph": "other"}`, 404},
	} {
		response := postRaw(t, url, "", c.body)
		var answer struct{ Error, Message string }
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Message == "" {
			t.Errorf("%s: got %+v (%v), want a message", name, answer, err)
		}
		if response.StatusCode != c.want {
			t.Errorf("%s: got status %d, want %d", name, response.StatusCode, c.want)
		}
	}
}

func TestDescribeListsEachGraphWithSchemas(t *testing.T) {
	t.Parallel()
	response := post(t, start(t, ""), "", map[string]any{"operation": "describe"})
	var answer struct {
		Graphs map[string]map[string]json.RawMessage
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	for id := range graphs {
		for _, part := range []string{"input_schema", "output_schema", "state_schema", "config_schema", "context_schema", "graph"} {
			if len(answer.Graphs[id][part]) == 0 {
				t.Errorf("graph %s has no %s", id, part)
			}
		}
	}
}

func TestAClosedConnectionStopsTheGraph(t *testing.T) {
	t.Parallel()
	returned := make(chan struct{})
	agent := newServer("", time.Now)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agent.ServeHTTP(w, r)
		close(returned)
	}))
	t.Cleanup(server.Close)
	encoded, err := json.Marshal(body("weather in sf?", `{"node_delay_ms":0,"token_delay_ms":3600000}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/invocations", strings.NewReader(string(encoded)))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	cancel()
	select {
	case <-returned:
	case <-time.After(10 * time.Second):
		t.Fatal("the graph goes on although nobody listens")
	}
}

func TestPingSaysBusyAndWhenThatChanged(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	server := httptest.NewServer(newServer("", func() time.Time { return time.Unix(now.Load(), 0) }))
	t.Cleanup(server.Close)
	check := func(when string, want string) {
		t.Helper()
		response, err := http.Get(server.URL + "/ping")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		got, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(string(got)) != want {
			t.Errorf("%s: got %s, want %s", when, got, want)
		}
	}
	now.Store(50)
	check("before any run", `{"status":"Healthy","time_of_last_update":0}`)
	now.Store(70)
	readEvents(t, post(t, server.URL, "", body("sf", fast)).Body)
	now.Store(80)
	check("after a run", `{"status":"Healthy","time_of_last_update":70}`)
	now.Store(100)
	slow := `{"node_delay_ms":0,"token_delay_ms":3600000}`
	first := post(t, server.URL, "", body("sf", slow))
	if _, err := bufio.NewReader(first.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	now.Store(200)
	if got := len(readEvents(t, post(t, server.URL, "", body("sf", fast)).Body)); got != 3 {
		t.Fatalf("got %d events of a second run, want 3", got)
	}
	check("while the first still runs", `{"status":"HealthyBusy","time_of_last_update":100}`)
}

func TestAPanicIsAnError(t *testing.T) {
	t.Parallel()
	err := protect(func() error { panic("boom") })
	if err == nil || err.Error() != "boom" || errorClass(err) != "Panic" {
		t.Errorf("got %v, want boom of the class Panic", err)
	}
}

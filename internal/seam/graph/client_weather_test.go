package graph_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/test/check"
)

const weatherSource = "../../../infra/examples/weather"

// buildWeather builds the example agent. To link what only a debugger reads would take as long
// again.
func buildWeather(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(t.TempDir(), "weather")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", binary, ".")
	build.Dir = weatherSource
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is built without the race detector
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build weather: %v\n%s", err, output)
	}
	return binary
}

// startWeather starts the example agent as a process and returns where it answers.
func startWeather(t *testing.T, binary string) compute.Endpoint {
	t.Helper()
	endpoint := compute.Endpoint{Token: "weather-token"}
	agent := exec.Command(binary)
	agent.Env = []string{"HOST=127.0.0.1", "PORT=0", "SLIPWAY_INVOKE_TOKEN=" + endpoint.Token}
	log, err := agent.StderrPipe()
	check.Must(t, err)
	check.Must(t, agent.Start())
	t.Cleanup(func() {
		if err := agent.Process.Signal(syscall.SIGKILL); err == nil {
			agent.Wait() // the error says that it was killed
		}
	})
	line, err := bufio.NewReader(log).ReadString('\n')
	_, address, found := strings.Cut(strings.TrimSpace(line), "address=")
	if !found {
		t.Fatalf("first line of the log: got %q (%v), want an address", line, err)
	}
	endpoint.URL = "http://" + address
	return endpoint
}

// ask is an invocation of the weather agent with one question.
func ask(question, configurable string, modes ...string) graph.Invocation {
	return graph.Invocation{
		Graph: "agent", ThreadID: "t1", RunID: runID, Attempt: 1, StreamMode: append([]string{"updates"}, modes...),
		State:  graph.State{Values: json.RawMessage(`{"messages":[{"type":"human","id":"h1","content":"` + question + `"}]}`)},
		Config: json.RawMessage(`{"configurable":` + configurable + `}`),
	}
}

// TestTheWeatherAgent builds the agent once for processes of which each test has its own.
func TestTheWeatherAgent(t *testing.T) {
	t.Parallel()
	binary := buildWeather(t)
	for name, test := range map[string]func(*testing.T, compute.Endpoint){
		"serves":                         weatherServes,
		"is busy until its run stops":    weatherIsBusyUntilItsRunStops,
		"is unavailable when it crashes": weatherIsUnavailableWhenItCrashes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, startWeather(t, binary))
		})
	}
}

func weatherServes(t *testing.T, endpoint compute.Endpoint) {
	fast := `{"node_delay_ms":0,"token_delay_ms":0,"answer_words":3}`

	t.Run("answers", func(t *testing.T) {
		t.Parallel()
		events, err := readAll(invoke(t, endpoint, ask("weather in sf?", fast, "messages")))
		check.Must(t, err)
		if diff := cmp.Diff([]string{"messages", "updates", "updates", "messages", "messages", "messages", "updates"}, names(events)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if !strings.Contains(string(events[2].Data), "San Francisco: 16 °C") {
			t.Errorf("got %s, want the weather in San Francisco", events[2].Data)
		}
	})
	t.Run("fails with an event", func(t *testing.T) {
		t.Parallel()
		events, err := readAll(invoke(t, endpoint, ask("weather in sf?", `{"node_delay_ms":0,"fail":"tools"}`)))
		if diff := cmp.Diff([]string{"updates", "error"}, names(events)); diff != "" || err != nil {
			t.Errorf("got %v (-want +got):\n%s", err, diff)
		}
	})
	t.Run("refuses another token", func(t *testing.T) {
		t.Parallel()
		_, err := newClient(t).Invoke(t.Context(), compute.Endpoint{URL: endpoint.URL, Token: "other"}, ask("sf", fast))
		if got, want := kind(err), "refused"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("describes itself", func(t *testing.T) {
		t.Parallel()
		got, err := newClient(t).Describe(t.Context(), endpoint, graph.Invocation{Operation: graph.OperationDescribe}, nil)
		if err != nil || len(got.Graphs["agent"].InputSchema) == 0 || len(got.Graphs["agent"].Graph) == 0 {
			t.Errorf("got %v, %v, want schemas and a graph", got, err)
		}
	})
}

func weatherIsBusyUntilItsRunStops(t *testing.T, endpoint compute.Endpoint) {
	client := newClient(t)
	if got := healthOf(t, endpoint); got != graph.Healthy {
		t.Errorf("the health before is %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := client.Invoke(ctx, endpoint, ask("weather in sf?", `{"node_delay_ms":0,"token_delay_ms":3600000}`))
	check.Must(t, err)
	defer stream.Close()
	if _, err := stream.Next(); err != nil {
		t.Fatal(err)
	}
	if got := healthOf(t, endpoint); got != graph.HealthyBusy {
		t.Errorf("the health meanwhile is %s", got)
	}
	cancel()
	for healthOf(t, endpoint) != graph.Healthy { // the agent notices soon, by its own connection
	}
}

func weatherIsUnavailableWhenItCrashes(t *testing.T, endpoint compute.Endpoint) {
	crash := `{"node_delay_ms":0,"token_delay_ms":0,"crash_attempts":1,"answer_words":10}`
	events, err := readAll(invoke(t, endpoint, ask("weather in sf?", crash, "messages")))
	if got, want := kind(err), "unavailable"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	want := []string{"messages", "updates", "updates", "messages", "messages", "messages", "messages", "messages"}
	if diff := cmp.Diff(want, names(events)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// healthOf asks an agent for its health.
func healthOf(t *testing.T, endpoint compute.Endpoint) graph.Health {
	t.Helper()
	response, err := http.Get(endpoint.URL + "/ping")
	check.Must(t, err)
	defer response.Body.Close()
	var answer graph.Ping
	check.Must(t, json.NewDecoder(response.Body).Decode(&answer))
	return answer.Status
}

func names(events []graph.Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, e.Name)
	}
	return all
}

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// asAgent makes the test binary be the agent, so that tests can start, signal and crash a process
// of it.
const asAgent = "WEATHER_TEST_AS_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// startProcess starts the agent on a port of its choice and returns its URL.
func startProcess(t *testing.T) (*exec.Cmd, string) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), asAgent+"=1", "HOST=127.0.0.1", "PORT=0", "SLIPWAY_INVOKE_TOKEN=")
	log, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(log).ReadString('\n')
	_, address, found := strings.Cut(strings.TrimSpace(line), "address=")
	if !found {
		t.Fatalf("first line of the log: got %q (%v), want an address", line, err)
	}
	return command, "http://" + address
}

func TestSIGTERMLetsRunningInvocationsFinish(t *testing.T) {
	t.Parallel()
	command, url := startProcess(t)
	response := post(t, url, "", body("weather in sf?", `{"node_delay_ms":0,"token_delay_ms":5}`, "messages"))
	lines := bufio.NewReader(response.Body)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Errorf("answer broke: %v", err)
	}
	if !strings.Contains(string(rest), "before you leave the house.") {
		t.Errorf("got an answer without its end: %s", rest)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("exit: got %v, want 0", err)
	}
}

func TestCrashAttemptsEndTheProcessInTheMiddleOfTheAnswer(t *testing.T) {
	t.Parallel()
	for attempt, wantCrash := range map[int]bool{1: true, 2: true, 3: false} {
		command, url := startProcess(t)
		request := body("weather in sf?", `{"node_delay_ms":0,"token_delay_ms":0,"crash_attempts":2,"answer_words":20}`, "messages")
		request["attempt"] = attempt
		response := post(t, url, "", request)
		answer, err := io.ReadAll(response.Body)
		if got := err != nil; got != wantCrash {
			t.Errorf("attempt %d: got a broken answer: %v, want %v (%v)", attempt, got, wantCrash, err)
		}
		if !wantCrash {
			continue
		}
		if got := strings.Count(string(answer), "event: messages"); got != 1+10 {
			t.Errorf("attempt %d: got %d chunks, want the tool call and half of 20 tokens", attempt, got)
		}
		var exit *exec.ExitError
		if err := command.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("attempt %d: got exit %v, want 1", attempt, err)
		}
	}
}

// body is an invocation with one question.
func body(question, configurable string, modes ...string) map[string]any {
	return invocationOn([]any{map[string]any{"type": "human", "id": "h1", "content": question}}, configurable, modes...)
}

func invocationOn(messages []any, configurable string, modes ...string) map[string]any {
	return map[string]any{
		"graph": "agent", "thread_id": "t1", "run_id": "r1", "attempt": 1, "stream_mode": append([]string{"updates"}, modes...),
		"state":  map[string]any{"values": map[string]any{"messages": messages}},
		"config": map[string]any{"configurable": json.RawMessage(configurable)},
	}
}

func post(t *testing.T, url, token string, body any) *http.Response {
	t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return postRaw(t, url, token, string(encoded))
}

func postRaw(t *testing.T, url, token, body string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/invocations", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}

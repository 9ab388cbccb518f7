package lambda_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/lambda"
)

const patience = 30 * time.Second

// platform makes a platform with one function, F, which is the test binary.
func platform(t *testing.T, change ...func(*lambda.Config)) *lambda.Platform {
	t.Helper()
	program, err := os.Executable()
	check.Must(t, err)
	config := lambda.Config{
		Functions: []lambda.Function{{Name: "F", Bootstrap: program, Timeout: patience, Env: map[string]string{"COLOUR": "red"}}},
		Processes: filepath.Join(t.TempDir(), "processes"),
		Log:       slog.New(slog.DiscardHandler),
	}
	for _, change := range change {
		change(&config)
	}
	p, err := lambda.New(config)
	check.Must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		check.Must(t, p.Close(ctx))
	})
	return p
}

// with changes the function.
func with(change func(*lambda.Function)) func(*lambda.Config) {
	return func(c *lambda.Config) { change(&c.Functions[0]) }
}

func payload(t *testing.T, o order) []byte {
	t.Helper()
	text, err := json.Marshal(o)
	check.Must(t, err)
	return text
}

// call calls F, which must succeed, and decodes its answer.
func call[T any](t *testing.T, p *lambda.Platform, o order) T {
	t.Helper()
	var out T
	text, err := p.Invoke(t.Context(), "F", payload(t, o))
	check.Must(t, err)
	check.Must(t, json.Unmarshal(text, &out))
	return out
}

// echoed is the answer to the order echo.
type echoed struct{ PID, Calls int }

// wantFailure checks how a call failed.
func wantFailure(t *testing.T, err error, name, message string) {
	t.Helper()
	failure, ok := errors.AsType[*lambda.FunctionError](err)
	if !ok || failure.Type != name || !strings.Contains(failure.Message, message) {
		t.Errorf("got %v, want %s: ...%s...", err, name, message)
	}
	if ok && !strings.Contains(string(failure.Payload), `"errorType":"`+name+`"`) {
		t.Errorf("the payload is %s", failure.Payload)
	}
}

// gate returns an address at which functions wait, and a function that waits for a waiting
// function and lets it pass.
func gate(t *testing.T) (address string, open func()) {
	t.Helper()
	address, arrival := waitingRoom(t)
	return address, func() {
		if pass := arrival(); pass != nil {
			pass()
		}
	}
}

// waitingRoom is a gate in two steps: the first step waits for a function to come, the second
// step lets it pass.
func waitingRoom(t *testing.T) (address string, arrival func() (pass func())) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String(), func() func() {
		check.Must(t, listener.(*net.TCPListener).SetDeadline(time.Now().Add(patience)))
		conn, err := listener.Accept()
		if err != nil {
			t.Errorf("nobody comes to the gate: %v", err)
			return nil
		}
		return func() { conn.Close() }
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, reached func() bool) {
	t.Helper()
	late := time.After(patience)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for !reached() {
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func TestProcessIsUsedAgain(t *testing.T) {
	t.Parallel()
	p := platform(t)
	for i := range 50 {
		if got := call[echoed](t, p, order{Do: "echo"}); got.Calls != i+1 {
			t.Fatalf("call %d is the process's call %d", i+1, got.Calls)
		}
	}
	if pids := p.Workers("F"); len(pids) != 1 {
		t.Errorf("there are the processes %v, want one", pids)
	}
}

func TestEachProcessHasOneCallAtATime(t *testing.T) {
	t.Parallel()
	p := platform(t)
	const many = 5
	var opens []func()
	var streams []*lambda.Stream
	for i := range many {
		path, open := gate(t)
		stream, err := p.InvokeStream(t.Context(), "F", payload(t, order{Do: "stream", Gate: path, Count: 1}))
		check.Must(t, err)
		defer stream.Close()
		opens, streams = append(opens, open), append(streams, stream)
		if pids := p.Workers("F"); len(pids) != i+1 {
			t.Errorf("%d calls have the processes %v", i+1, pids)
		}
	}
	for i, open := range opens {
		open()
		if text, err := io.ReadAll(streams[i]); err != nil || string(text) != "part 1\n" {
			t.Errorf("stream %d: %q, %v", i, text, err)
		}
	}
}

func TestProcessThatWasFreeShortestIsUsed(t *testing.T) {
	t.Parallel()
	p := platform(t)
	var opens []func()
	var first []int
	for range 2 {
		path, open := gate(t)
		stream, err := p.InvokeStream(t.Context(), "F", payload(t, order{Do: "stream", Gate: path, Count: 1}))
		check.Must(t, err)
		defer stream.Close()
		opens = append(opens, func() {
			open()
			_, err := io.ReadAll(stream)
			check.Must(t, err)
		})
		if first == nil {
			first = p.Workers("F")
		}
	}
	for i, open := range opens {
		open()
		eventually(t, "its process is free", func() bool { return p.Free("F") == i+1 })
	}
	if got := call[echoed](t, p, order{Do: "echo"}); got.PID == first[0] {
		t.Error("the process that was free for longest is used")
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	p := platform(t, with(func(f *lambda.Function) { f.Alias = "live" }))
	for _, c := range []struct {
		do, name, message string
		// survives says whether the process survives.
		survives bool
	}{
		{"fail", "errorString", "it went wrong", true},
		{"fail by name", "AgentUnavailable", "nobody answers", true},
		{"panic", "string", "out of cheese", false},
		{"exit", lambda.TypeExit, "exit status 3", false},
	} {
		before := call[echoed](t, p, order{Do: "echo"})
		_, err := p.Invoke(t.Context(), "F", payload(t, order{Do: c.do}))
		wantFailure(t, err, c.name, c.message)
		if after := call[echoed](t, p, order{Do: "echo"}); (after.PID == before.PID) != c.survives {
			t.Errorf("%s: the process was %d and is %d", c.do, before.PID, after.PID)
		}
	}
	for _, qualifier := range []string{"", "1", "other"} {
		if _, err := p.Invoke(t.Context(), p.ARN("F")+":"+qualifier, nil); !errors.Is(err, lambda.ErrUnknownFunction) {
			t.Errorf("the qualifier %q: got %v", qualifier, err)
		}
	}
	if _, err := p.Invoke(t.Context(), "G", nil); !errors.Is(err, lambda.ErrUnknownFunction) {
		t.Errorf("unknown function: %v", err)
	}
	for _, name := range []string{p.ARN("F"), p.ARN("F") + ":live", "F:live", "F:$LATEST"} {
		if _, err := p.Invoke(t.Context(), name, payload(t, order{Do: "echo"})); err != nil {
			t.Errorf("by the name %s: %v", name, err)
		}
	}
}

func TestProcessIsKilled(t *testing.T) {
	t.Parallel()
	p := platform(t)
	path, _ := gate(t)
	call[echoed](t, p, order{Do: "echo"})
	stream, err := p.InvokeStream(t.Context(), "F", payload(t, order{Do: "stream", Gate: path, Count: 2}))
	check.Must(t, err)
	defer stream.Close()
	for _, pid := range p.Workers("F") {
		check.Must(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	_, err = io.ReadAll(stream)
	wantFailure(t, err, lambda.TypeExit, "signal: killed")
	call[echoed](t, p, order{Do: "echo"})
}

func TestIdleProcessIsKilled(t *testing.T) {
	t.Parallel()
	p := platform(t)
	for range 20 {
		pid := call[echoed](t, p, order{Do: "echo"}).PID
		check.Must(t, syscall.Kill(pid, syscall.SIGKILL))
		eventually(t, "its end is seen", func() bool { return !slices.Contains(p.Workers("F"), pid) })
		call[echoed](t, p, order{Do: "echo"})
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	p := platform(t, with(func(f *lambda.Function) { f.Timeout = 300 * time.Millisecond }))
	path, _ := gate(t)
	before := call[echoed](t, p, order{Do: "echo"})
	_, err := p.Invoke(t.Context(), "F", payload(t, order{Do: "wait", Gate: path}))
	wantFailure(t, err, lambda.TypeTimeout, "Task timed out after 0.30 seconds")
	if after := call[echoed](t, p, order{Do: "echo"}); after.PID == before.PID {
		t.Error("the process lives on")
	}
	stream, err := p.InvokeStream(t.Context(), "F", payload(t, order{Do: "stream", Gate: path, Count: 2}))
	check.Must(t, err)
	defer stream.Close()
	text, err := io.ReadAll(stream)
	wantFailure(t, err, lambda.TypeTimeout, "Task timed out")
	if string(text) != "part 1\n" {
		t.Errorf("the stream was %q", text)
	}
}

func TestDeadlineAndContext(t *testing.T) {
	t.Parallel()
	p := platform(t, with(func(f *lambda.Function) { f.Timeout = 100 * time.Second }))
	type told struct {
		Left    float64
		ID, ARN string
	}
	first, second := call[told](t, p, order{Do: "deadline"}), call[told](t, p, order{Do: "deadline"})
	if first.Left < 90 || first.Left > 100 {
		t.Errorf("%f s are left, want 100", first.Left)
	}
	if first.ARN != p.ARN("F") || first.ID == "" || first.ID == second.ID {
		t.Errorf("got %+v, then %+v", first, second)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	p := platform(t, func(c *lambda.Config) { c.Temp = temp })
	var names []string
	for _, variable := range call[[]string](t, p, order{Do: "environment"}) {
		name, value, _ := strings.Cut(variable, "=")
		names = append(names, name)
		for known, want := range map[string]string{"COLOUR": "red", "TMPDIR": temp, "AWS_LAMBDA_FUNCTION_NAME": "F"} {
			if name == known && value != want {
				t.Errorf("%s is %q, want %q", name, value, want)
			}
		}
	}
	slices.Sort(names)
	want := strings.Fields(`AWS_ACCESS_KEY_ID AWS_DEFAULT_REGION AWS_LAMBDA_FUNCTION_MEMORY_SIZE AWS_LAMBDA_FUNCTION_NAME AWS_LAMBDA_FUNCTION_VERSION
		AWS_LAMBDA_INITIALIZATION_TYPE AWS_LAMBDA_LOG_GROUP_NAME AWS_LAMBDA_LOG_STREAM_NAME AWS_LAMBDA_RUNTIME_API AWS_REGION AWS_SECRET_ACCESS_KEY
		COLOUR LAMBDA_RUNTIME_DIR LAMBDA_TASK_ROOT LANG PATH SLIPWAY_PROCESS TMPDIR TZ _HANDLER _X_AMZN_TRACE_ID`)
	if !slices.Equal(names, want) {
		t.Errorf("the environment has %q, want %q", names, want)
	}
}

func TestOutputHasTheFunctionsName(t *testing.T) {
	t.Parallel()
	var out check.Log
	p := platform(t, func(c *lambda.Config) { c.Output = &out })
	call[string](t, p, order{Do: "write"})
	eventually(t, "the lines are there", func() bool { return out.String() == "F: one line\nF: and half a line\n" })
}

func TestFailedStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(*lambda.Config)
		want    string
		message string
	}{
		"exits":     {with(func(f *lambda.Function) { f.Env["START"] = "broken" }), lambda.TypeExit, "exit status 7\nthere is no table"},
		"too late":  {func(c *lambda.Config) { c.InitLimit = 100 * time.Millisecond; c.Functions[0].Env["START"] = "late" }, lambda.TypeTimeout, "Init"},
		"not built": {with(func(f *lambda.Function) { f.Bootstrap = "/no/such/bootstrap" }), lambda.TypeEntrypoint, "was the function built?"},
		"not a program": {
			with(func(f *lambda.Function) { f.Bootstrap = "/etc/passwd" }), lambda.TypeEntrypoint, "permission denied",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := platform(t, c.change)
			for range 2 {
				_, err := p.Invoke(t.Context(), "F", []byte("{}"))
				wantFailure(t, err, c.want, c.message)
			}
		})
	}
}

func TestReplacedProgramIsUsed(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	check.Must(t, err)
	bootstrap := filepath.Join(t.TempDir(), "bootstrap")
	install := func() {
		check.Must(t, os.Link(program, bootstrap+".new"))
		check.Must(t, os.Rename(bootstrap+".new", bootstrap))
	}
	// This process must not have the file open for writing: a process that another test starts
	// meanwhile would inherit that, and Linux starts no program that is open for writing.
	check.Must(t, exec.CommandContext(t.Context(), "cp", program, bootstrap).Run())
	p := platform(t, with(func(f *lambda.Function) { f.Bootstrap = bootstrap }))
	first := call[echoed](t, p, order{Do: "echo"})
	if again := call[echoed](t, p, order{Do: "echo"}); again.PID != first.PID {
		t.Errorf("the process was replaced although its program was not")
	}
	install()
	if second := call[echoed](t, p, order{Do: "echo"}); second.PID == first.PID {
		t.Error("the old program answers")
	}
	eventually(t, "the old process ends", func() bool { return len(p.Workers("F")) == 1 })
}

func TestIdleProcessEnds(t *testing.T) {
	t.Parallel()
	p := platform(t, func(c *lambda.Config) { c.IdleLimit = 50 * time.Millisecond })
	first := call[echoed](t, p, order{Do: "echo"})
	eventually(t, "it ends", func() bool { return len(p.Workers("F")) == 0 })
	if second := call[echoed](t, p, order{Do: "echo"}); second.PID == first.PID {
		t.Error("it lives")
	}
}

func TestReservedConcurrencyThrottles(t *testing.T) {
	t.Parallel()
	p := platform(t, with(func(f *lambda.Function) { f.Reserved = 1 }))
	path, open := gate(t)
	stream, err := p.InvokeStream(t.Context(), "F", payload(t, order{Do: "stream", Gate: path, Count: 1}))
	check.Must(t, err)
	defer stream.Close()
	if _, err := p.Invoke(t.Context(), "F", payload(t, order{Do: "echo"})); !errors.Is(err, lambda.ErrThrottled) {
		t.Errorf("got %v, want a throttled call", err)
	}
	open()
	_, err = io.ReadAll(stream)
	check.Must(t, err)
	eventually(t, "the stream's end is seen", func() bool {
		_, err := p.Invoke(t.Context(), "F", payload(t, order{Do: "echo"}))
		return err == nil
	})
}

func TestMaxProcessesLetsCallsWait(t *testing.T) {
	t.Parallel()
	p := platform(t, with(func(f *lambda.Function) { f.MaxProcesses = 2 }))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := p.Invoke(t.Context(), "F", payload(t, order{Do: "echo"})); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if pids := p.Workers("F"); len(pids) > 2 {
		t.Errorf("there are the processes %v", pids)
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	p := platform(t)
	if _, err := p.Invoke(t.Context(), "F", make([]byte, lambda.MaxRequest+1)); !errors.Is(err, lambda.ErrTooLarge) {
		t.Errorf("request: got %v, want ErrTooLarge", err)
	}
	text, err := p.Invoke(t.Context(), "F", payload(t, order{Do: "long", Size: lambda.MaxResponse}))
	if err != nil || len(text) != lambda.MaxResponse {
		t.Errorf("longest response: got %d bytes, %v", len(text), err)
	}
	_, err = p.Invoke(t.Context(), "F", payload(t, order{Do: "long", Size: lambda.MaxResponse + 1}))
	wantFailure(t, err, lambda.TypeTooLarge, "6291556 bytes")
	call[echoed](t, p, order{Do: "echo"})
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	p := platform(t)
	server := httptest.NewServer(p)
	defer server.Close()
	for name, c := range map[string]struct {
		function, body, invocation string
		status                     int
		functionError, want        string
	}{
		"answers":     {"F", `{"Do":"long","Size":4}`, "", 200, "", `"aa"`},
		"by ARN":      {p.ARN("F"), `{"Do":"long","Size":4}`, "RequestResponse", 200, "", `"aa"`},
		"fails":       {"F", `{"Do":"fail by name"}`, "", 200, "Unhandled", `{"errorMessage":"nobody answers","errorType":"AgentUnavailable"}`},
		"is unknown":  {"G", `{}`, "", 404, "", `"Function not found: G"`},
		"is not JSON": {"F", `{`, "", 400, "", `"Could not parse request body into json"`},
		"too large":   {"F", `"` + strings.Repeat("a", lambda.MaxRequest) + `"`, "", 413, "", "6291456"},
		"later":       {"F", `{"Do":"echo"}`, "Event", 202, "", ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/2015-03-31/functions/"+c.function+"/invocations", strings.NewReader(c.body))
		check.Must(t, err)
		request.Header.Set("X-Amz-Invocation-Type", cmp.Or(c.invocation, "RequestResponse"))
		answer, err := http.DefaultClient.Do(request)
		check.Must(t, err)
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		check.Must(t, err)
		if answer.StatusCode != c.status || answer.Header.Get("X-Amz-Function-Error") != c.functionError || !strings.Contains(string(text), c.want) {
			t.Errorf("%s: got %d, %q, %s", name, answer.StatusCode, answer.Header.Get("X-Amz-Function-Error"), text)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

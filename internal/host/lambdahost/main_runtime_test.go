package lambdahost_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/check"
)

// patience is how long a test waits for a function.
const patience = 30 * time.Second

// runtimeAPI is the Runtime API of one function, like Lambda's: the function asks for its next
// invocation, and posts the result.
type runtimeAPI struct {
	t           *testing.T
	invocations chan invoked
	ready       chan struct{}
	exited      chan error
	output      output
	pending     chan *answered
}

// output is the file that a function writes its log to: the log lines from before an answer are
// there when the answer is.
type output string

func (o output) String() string {
	text, err := os.ReadFile(string(o))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// invoked is an invocation.
type invoked struct {
	event   string
	timeout time.Duration
}

// answered is the result that a function posts. Its body is read while the function writes it.
type answered struct {
	isError     bool
	contentType string
	body        io.Reader
	trailer     http.Header
	done        chan struct{}
}

// start runs a program as a function.
func start(t *testing.T, program string, environment ...string) *runtimeAPI {
	t.Helper()
	api := &runtimeAPI{
		t: t, invocations: make(chan invoked), ready: make(chan struct{}, 16), exited: make(chan error, 1),
		pending: make(chan *answered), output: output(filepath.Join(t.TempDir(), "output")),
	}
	written, err := os.Create(string(api.output))
	check.Must(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", api.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/{kind}", api.post)
	server := httptest.NewServer(mux)
	ctx, kill := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, program)
	command.Env = slices.Concat(environment, []string{"AWS_LAMBDA_RUNTIME_API=" + strings.TrimPrefix(server.URL, "http://")})
	command.Stdout, command.Stderr = written, written
	command.WaitDelay = time.Second
	if err := command.Start(); err != nil {
		kill()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		api.exited <- command.Wait()
	}()
	t.Cleanup(func() {
		kill()
		<-ended
		server.CloseClientConnections()
		server.Close()
		written.Close()
		if t.Failed() {
			t.Logf("the function wrote:\n%s", api.output)
		}
	})
	return api
}

// self runs one of the functions of this test program.
func self(t *testing.T, name string, environment ...string) *runtimeAPI {
	t.Helper()
	program, err := os.Executable()
	check.Must(t, err)
	return start(t, program, append(environment, variableFunction+"="+name)...)
}

func (a *runtimeAPI) next(w http.ResponseWriter, r *http.Request) {
	select {
	case a.ready <- struct{}{}:
	default:
	}
	select {
	case i := <-a.invocations:
		w.Header().Set("Lambda-Runtime-Aws-Request-Id", invocationID)
		w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(i.timeout).UnixMilli()))
		w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-north-1:1:function:test")
		io.WriteString(w, i.event)
	case <-r.Context().Done():
	}
}

func (a *runtimeAPI) post(w http.ResponseWriter, r *http.Request) {
	answer := &answered{
		isError: r.PathValue("kind") == "error", contentType: r.Header.Get("Content-Type"), body: r.Body, trailer: r.Trailer, done: make(chan struct{}),
	}
	select {
	case a.pending <- answer:
	case <-r.Context().Done():
		return
	}
	<-answer.done
	w.WriteHeader(http.StatusAccepted)
}

// invoke sends an event and returns the answer, whose body is still coming.
func (a *runtimeAPI) invoke(event string, timeout time.Duration) *answered {
	a.t.Helper()
	limit := time.After(patience)
	select {
	case a.invocations <- invoked{event, timeout}:
	case <-limit:
		a.t.Fatal("the function does not ask for an invocation")
	}
	select {
	case answer := <-a.pending:
		return answer
	case <-limit:
		a.t.Fatal("the function does not answer")
	}
	return nil
}

// rest reads the body to its end and lets the function go on.
func (r *answered) rest(t *testing.T) string {
	t.Helper()
	defer close(r.done)
	text, err := io.ReadAll(r.body)
	if err != nil {
		t.Errorf("read response: %v", err)
	}
	return string(text)
}

// until reads the body until it has a text.
func (r *answered) until(t *testing.T, text string) string {
	t.Helper()
	var read []byte
	for !bytes.Contains(read, []byte(text)) {
		chunk := make([]byte, 4<<10)
		n, err := r.body.Read(chunk)
		read = append(read, chunk[:n]...)
		if err != nil {
			t.Fatalf("read response: %v after %q", err, read)
		}
	}
	return string(read)
}

// failure is the error that a stream ended with: its type, and its JSON.
func (r *answered) failure(t *testing.T) (kind, text string) {
	t.Helper()
	decoded, err := base64.StdEncoding.DecodeString(r.trailer.Get("Lambda-Runtime-Function-Error-Body"))
	if err != nil {
		t.Errorf("the error's body: %v", err)
	}
	return r.trailer.Get("Lambda-Runtime-Function-Error-Type"), string(decoded)
}

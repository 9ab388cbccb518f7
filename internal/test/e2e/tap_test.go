//go:build lambda

package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// newStack starts a server whose functions are processes.
func newStack(t *testing.T, flags ...string) *server {
	t.Helper()
	if *kind != "lambda" {
		t.Fatal("these tests look at the processes of functions: run them with -server lambda")
	}
	return newServer(t, flags...)
}

// functions finds the processes of a function, which the template names.
func (s *server) functions(t *testing.T, name string) []int {
	t.Helper()
	on, ok := s.target.(*local)
	if !ok {
		t.Fatal("the server is not on this machine")
	}
	temp, named := []byte("TMPDIR="+filepath.Join(on.data(), "tmp")), []byte("AWS_LAMBDA_FUNCTION_NAME="+name)
	pids, err := processes(
		func(variable []byte) bool { return bytes.Equal(variable, temp) },
		func(variable []byte) bool { return bytes.Equal(variable, named) })
	check.Must(t, err)
	return pids
}

// killFunction ends all processes of a function at once.
func (s *server) killFunction(t *testing.T, name string) {
	t.Helper()
	pids := s.functions(t, name)
	if len(pids) == 0 {
		t.Fatalf("function %s has no process", name)
	}
	check.Must(t, end(pids))
}

// replaced returns a directory of built functions in which shell scripts start some of the
// functions. Functions are named by their folders here.
func replaced(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	folders, err := filepath.Glob(filepath.Join(built.functions, "*", "bootstrap"))
	check.Must(t, err)
	for _, bootstrap := range folders {
		name := filepath.Base(filepath.Dir(bootstrap))
		own := filepath.Join(dir, name)
		script, ok := scripts[name]
		if !ok {
			check.Must(t, os.Symlink(filepath.Dir(bootstrap), own))
			continue
		}
		check.Must(t, os.Mkdir(own, 0o700))
		text := "#!/bin/sh\n" + strings.ReplaceAll(script, "BOOTSTRAP", "'"+bootstrap+"'") + "\n"
		check.Must(t, os.WriteFile(filepath.Join(own, "bootstrap"), []byte(text), 0o700))
	}
	return dir
}

// moment is the moment when a process gets a call, or gives its answer.
type moment struct {
	function string
	pid      int
	answer   bool
	// text is the call's event, or its answer.
	text string
}

// tap stands between functions and the Runtime API. It sees each call twice, as it is handed
// out and as it is answered, and can end the process at that very moment: before any work was
// done, or when all work was done and the caller does not know it.
type tap struct {
	*httptest.Server

	mu      sync.Mutex
	moments []moment
	kill    func(moment) bool
}

// newTapped starts a server with a tap at some functions, named by their folders. A process
// ends at each moment for which kill returns true.
func newTapped(t *testing.T, kill func(moment) bool, folders ...string) (*server, *tap) {
	t.Helper()
	tapped := &tap{kill: kill}
	mux := http.NewServeMux()
	mux.HandleFunc("/{function}/{pid}/{api}/{rest...}", tapped.relay)
	tapped.Server = httptest.NewServer(mux)
	t.Cleanup(tapped.CloseClientConnections) // processes wait for calls on their connections
	scripts := map[string]string{}
	for _, folder := range folders {
		scripts[folder] = fmt.Sprintf(`AWS_LAMBDA_RUNTIME_API="%s/%s/$$/$AWS_LAMBDA_RUNTIME_API" exec BOOTSTRAP`, tapped.Listener.Addr(), folder)
	}
	return newStack(t, "--build", replaced(t, scripts)), tapped
}

func (tp *tap) relay(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	pid, invalid := strconv.Atoi(r.PathValue("pid"))
	if err != nil || invalid != nil {
		panic(http.ErrAbortHandler) // the process has ended
	}
	isAnswer := r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/invocation/")
	if isAnswer {
		tp.pass(moment{r.PathValue("function"), pid, true, string(body)})
	}
	request, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+r.PathValue("api")+"/"+r.PathValue("rest"), bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header = r.Header.Clone()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(http.ErrAbortHandler) // one of the two processes has ended
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/invocation/next") {
		tp.pass(moment{r.PathValue("function"), pid, false, string(text)})
	}
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	w.Write(text)
}

// pass notes a moment, and ends the process if kill says so.
func (tp *tap) pass(m moment) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	tp.moments = append(tp.moments, m)
	if tp.kill != nil && tp.kill(m) {
		_ = syscall.Kill(m.pid, syscall.SIGKILL) // it waits for us
		panic(http.ErrAbortHandler)
	}
}

// await waits for a moment.
func (tp *tap) await(t *testing.T, what string, is func(moment) bool) {
	t.Helper()
	eventually(t, what, func() (bool, any) {
		tp.mu.Lock()
		defer tp.mu.Unlock()
		return slices.ContainsFunc(tp.moments, is), len(tp.moments)
	})
}

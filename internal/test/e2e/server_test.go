package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// logTail is how many lines of the server's log a failed test shows.
const logTail = 60

// server is a running target, and a client of it.
type server struct {
	target
	credentials
}

// newServer starts a one-machine server with its own data. The server ends with the test.
func newServer(t *testing.T, flags ...string) *server {
	t.Helper()
	return startServer(t, newLocal(t.TempDir(), flags...))
}

func startServer(t *testing.T, on target) *server {
	t.Helper()
	s := &server{target: on}
	t.Cleanup(func() {
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
	s.explain(t)
	s.start(t)
	return s
}

func (s *server) start(t *testing.T) {
	t.Helper()
	s.credentials = s.launch(t)
	s.call(t, http.StatusOK, "GET", "/ok", nil, nil)
}

func (s *server) launch(t *testing.T) credentials {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	found, err := s.target.start(ctx)
	check.Must(t, err)
	return found
}

// kill9 ends the server at once.
func (s *server) kill9(t *testing.T) {
	t.Helper()
	check.Must(t, s.kill())
	http.DefaultClient.CloseIdleConnections()
}

// restart starts a killed server again, on the same data and the same address. Other goroutines may
// go on sending requests to it.
func (s *server) restart(t *testing.T) {
	t.Helper()
	if found := s.launch(t); found != s.credentials {
		t.Fatalf("the server has other credentials after its restart: %+v, before %+v", found, s.credentials)
	}
	s.call(t, http.StatusOK, "GET", "/ok", nil, nil)
}

// explain shows the end of the server's log if the test fails.
func (s *server) explain(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			// Successful reads are left out, because the tests use them to wait.
			lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(s.log()), "\n"), func(line string) bool {
				return (strings.Contains(line, " msg=request method=GET ") && strings.Contains(line, " status=200 ")) ||
					(strings.Contains(line, `"message":"request","method":"GET"`) && strings.Contains(line, `"status":200,`))
			})
			t.Logf("the server's log:\n%s", strings.Join(lines[max(0, len(lines)-logTail):], "\n"))
		}
	})
}

// end ends the server, and reports log lines that it must never write.
func (s *server) end() error {
	if err := s.close(); err != nil {
		return err
	}
	log := s.log()
	for _, bad := range []string{"WARNING: DATA RACE", "panicked", "panic:", "fatal error:"} {
		if at := strings.Index(log, bad); at >= 0 {
			return fmt.Errorf("the server's log has %q:\n%s", bad, log[at:min(len(log), at+4000)])
		}
	}
	return nil
}

// response is a whole response.
type response struct {
	status int
	header http.Header
	body   []byte
}

// send sends a request. The address is a path of the control plane or a whole URL; the body is
// JSON, or a string that is sent unchanged.
func (s *server) send(ctx context.Context, method, address string, body any, header ...string) (*http.Response, error) {
	if strings.HasPrefix(address, "/") {
		address = s.BaseURL + address
	}
	var content io.Reader
	if text, isText := body.(string); isText {
		content = strings.NewReader(text)
	} else if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Api-Key", s.APIKey)
	request.Header.Set("X-Tenant-Id", s.TenantID)
	if content != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	return http.DefaultClient.Do(request)
}

// do sends a request and reads the response.
func (s *server) do(ctx context.Context, method, address string, body any, header ...string) (response, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := s.send(ctx, method, address, body, header...)
	if err != nil {
		return response{}, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return response{}, fmt.Errorf("%s %s: %w", method, address, err)
	}
	return response{answer.StatusCode, answer.Header, text}, nil
}

// call is do for a response that must have the status; out, unless it is nil, is decoded from its
// body.
func (s *server) call(t *testing.T, status int, method, address string, body, out any, header ...string) response {
	t.Helper()
	got, err := s.do(t.Context(), method, address, body, header...)
	check.Must(t, err)
	if got.status != status {
		t.Fatalf("%s %s: status %d, want %d: %s", method, address, got.status, status, got.body)
	}
	if got.header.Get("X-Request-Id") == "" {
		t.Errorf("%s %s: there is no X-Request-Id", method, address)
	}
	if out != nil {
		if err := json.Unmarshal(got.body, out); err != nil {
			t.Fatalf("%s %s: %v: %s", method, address, err, got.body)
		}
	}
	return got
}

//go:build agents

package e2e_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAgentsOwnApplications deploys repositories that contain their own HTTP application.
func TestAgentsOwnApplications(t *testing.T) {
	s := newAgentServer(t)
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			repo := newRepository(t)
			check.Must(t, os.CopyFS(repo.dir, os.DirFS(filepath.Join("testdata", "application", language))))
			repo.commit(t)
			d := s.deployExample(t, language, repo)
			if language == "python" {
				d.isMounted(t, "/own")
			}
			var hello struct {
				Name, Word string
				Key        *string
				Body       map[string]any
			}
			s.call(t, http.StatusOK, "POST", d.url+"/hello/ada", map[string]any{"a": 1}, &hello)
			if hello.Name != "ada" || hello.Word != "started" || hello.Key != nil || hello.Body["a"] != 1.0 {
				t.Errorf("got %+v", hello)
			}
			counts, err := s.send(t.Context(), "GET", d.url+"/counts", nil)
			check.Must(t, err)
			defer counts.Body.Close()
			var said []string
			for lines := bufio.NewScanner(counts.Body); lines.Scan(); {
				if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					said = append(said, text)
				}
			}
			if strings.Join(said, " ") != "0 1 2" || counts.Header.Get("Content-Type")[:17] != "text/event-stream" {
				t.Errorf("the stream has %q, %v", said, counts.Header)
			}
			if *kind == "standalone" { // API Gateway passes on a request as a whole
				d.echoes(t)
			}
			d.isVisited(t)
			var shadow struct{ Mine string }
			if s.call(t, http.StatusOK, "GET", d.url+"/assistants/a/graph", nil, &shadow); shadow.Mine != "a" {
				t.Errorf("the server's route answers: %+v", shadow)
			}
			var calls struct{ Assistants []string }
			if s.call(t, http.StatusOK, "POST", d.url+"/calls", nil, &calls); len(calls.Assistants) != 1 {
				t.Errorf("the application has found %q", calls.Assistants)
			}
			s.call(t, http.StatusNotFound, "POST", d.url+"/store/items/search", map[string]any{"namespace_prefix": []string{}}, nil)
			var state struct{ Text string }
			s.call(t, http.StatusOK, "POST", d.url+"/runs/wait", map[string]any{"assistant_id": "agent", "input": map[string]any{"text": ""}}, &state, "Accept-Language", "eo", "Origin", "https://app.test")
			if state.Text != "eo" {
				t.Errorf("the graph says %q", state.Text)
			}
			info := s.call(t, http.StatusOK, "GET", d.url+"/info", nil, nil, "Origin", "https://app.test")
			if allowed := info.header.Get("Access-Control-Allow-Origin"); allowed != "https://app.test" {
				t.Errorf("allowed is %q", allowed)
			}
			d.remove(t)
		})
	}
}

// isMounted checks that no path without the prefix is served, by whatever function of a stack. From
// then on, the deployment's URL has the prefix.
func (d *deployment) isMounted(t *testing.T, prefix string) {
	t.Helper()
	for _, at := range []string{"POST /hello/ada", "POST /threads", "POST /assistants/search", "POST /runs", "POST /runs/wait", "GET /info"} {
		method, path, _ := strings.Cut(at, " ")
		d.server.call(t, http.StatusNotFound, method, d.url+path, nil, nil)
	}
	d.url += prefix
	d.server.call(t, http.StatusOK, "GET", d.url+"/ok", nil, nil)
}

// isVisited checks, without any key, that bytes pass both ways unharmed, and that preflights are
// answered by the rules of the repository, at its own routes and at the server's routes.
func (d *deployment) isVisited(t *testing.T) {
	t.Helper()
	visit := func(method, path, body string, header ...string) (*http.Response, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, d.url+path, strings.NewReader(body))
		check.Must(t, err)
		for i := 0; i < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		answer, err := http.DefaultClient.Do(request)
		check.Must(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		check.Must(t, err)
		return answer, string(text)
	}
	raw := strings.Repeat("\x00\xff\r\n%", 1000)
	if _, echo := visit("POST", "/echo/", raw, "Content-Type", "application/octet-stream"); echo != raw {
		t.Errorf("%d bytes come back as %d", len(raw), len(echo))
	}
	for _, path := range []string{"/hello/ada", "/threads"} {
		for origin, want := range map[string]string{"https://app.test": "https://app.test", "https://other.test": ""} {
			answer, _ := visit("OPTIONS", path, "", "Origin", origin, "Access-Control-Request-Method", "POST")
			if got := answer.Header.Get("Access-Control-Allow-Origin"); got != want {
				t.Errorf("%s: a preflight of %s is answered with %d and %q", path, origin, answer.StatusCode, got)
			}
		}
	}
	if refused, text := visit("POST", "/threads", "{}", "Content-Type", "application/json"); refused.StatusCode != http.StatusUnauthorized {
		t.Errorf("a thread without a key: %d %s", refused.StatusCode, text)
	}
	if *kind == "standalone" {
		return
	}
	if socket, text := visit("GET", "/counts", "", "Sec-WebSocket-Key", "x"); socket.StatusCode != http.StatusNotImplemented {
		t.Errorf("a WebSocket: %d %s", socket.StatusCode, text)
	}
}

// TestAgentsLargeAnswers has an application send an answer that is larger than the answers of
// functions that do not stream, and measures how long a client waits for the first byte. Nothing
// but the application is served, and only to callers with a key.
func TestAgentsLargeAnswers(t *testing.T) {
	s := newAgentServer(t)
	repo := newRepository(t)
	check.Must(t, os.CopyFS(repo.dir, os.DirFS(filepath.Join("testdata", "application", "python"))))
	disabled := map[string][]string{
		"a2a": {"POST /a2a/agent", "GET /.well-known/agent-card.json?assistant_id=agent"}, "assistants": {"POST /assistants/search", "GET /assistants/agent"},
		"mcp": {"POST /mcp"}, "meta": {"GET /info", "GET /metrics"}, "runs": {"POST /runs", "POST /runs/wait", "POST /runs/stream", "POST /runs/crons"},
		"store": {"PUT /store/items", "POST /store/items/search"}, "threads": {"POST /threads", "GET /threads/agent/state", "GET /threads/agent/stream"}, "ui": nil, "webhooks": nil,
	}
	asked := map[string]any{"app": "./webapp.py:app", "enable_custom_route_auth": true}
	for group := range disabled {
		asked["disable_"+group] = true
	}
	repo.write(t, "framework.json", map[string]any{"dependencies": []string{"."}, "graphs": map[string]string{"agent": "./agent.py:graph"}, "http": asked})
	repo.commit(t)
	d := s.deployExample(t, "python", repo)
	for _, routes := range disabled {
		for _, at := range routes {
			method, path, _ := strings.Cut(at, " ")
			s.call(t, http.StatusNotFound, method, d.url+path, nil, nil)
		}
	}
	s.call(t, http.StatusUnauthorized, "GET", d.url+"/large", nil, nil, "X-Api-Key", "", "X-Tenant-Id", "")
	for i := range 5 {
		began := time.Now()
		answer, err := s.send(t.Context(), "GET", d.url+"/large", nil)
		check.Must(t, err)
		first := make([]byte, 1)
		if _, err := io.ReadFull(answer.Body, first); err != nil {
			t.Fatal(err)
		}
		waited := time.Since(began)
		size, err := io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if err != nil || size+1 != 50<<20 {
			t.Errorf("got %d bytes: %v", size+1, err)
		}
		t.Logf("request %d: first byte after %s, 50 MiB after %s", i, waited, time.Since(began))
	}
	if *kind == "standalone" {
		return
	}
	// The server's own route is at a function that does not stream.
	var refused struct{ Detail string }
	s.call(t, http.StatusRequestEntityTooLarge, "GET", d.url+"/assistants/large/schemas", nil, &refused)
	if !strings.Contains(refused.Detail, "larger than 6 MB") {
		t.Errorf("the refusal says %q", refused.Detail)
	}
}

// echoes checks that an answer begins before its request has ended.
func (d *deployment) echoes(t *testing.T) {
	t.Helper()
	body, write := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/echo/", body)
	check.Must(t, err)
	go io.WriteString(write, "one")
	answer, err := http.DefaultClient.Do(request)
	check.Must(t, err)
	defer answer.Body.Close()
	first := make([]byte, len("one"))
	if _, err := io.ReadFull(answer.Body, first); err != nil || string(first) != "one" {
		t.Fatalf("the answer begins with %q, %v", first, err)
	}
	go func() {
		io.WriteString(write, "two")
		write.Close()
	}()
	if rest, err := io.ReadAll(answer.Body); err != nil || string(rest) != "two" {
		t.Errorf("the answer goes on with %q, %v", rest, err)
	}
}

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
)

// TestAgentsOwnApplications deploys repositories that contain their own HTTP application.
func TestAgentsOwnApplications(t *testing.T) {
	s := newAgentServer(t)
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			repo := newRepository(t)
			if err := os.CopyFS(repo.dir, os.DirFS(filepath.Join("testdata", "application", language))); err != nil {
				t.Fatal(err)
			}
			repo.commit(t)
			d := s.deployExample(t, language, repo)
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
			if err != nil {
				t.Fatal(err)
			}
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
			d.echoes(t)
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

// echoes checks that an answer begins before its request has ended.
func (d *deployment) echoes(t *testing.T) {
	t.Helper()
	body, write := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/echo/", body)
	if err != nil {
		t.Fatal(err)
	}
	go io.WriteString(write, "one")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
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

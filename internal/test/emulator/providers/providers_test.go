package providers_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/providers"
)

// send posts a request and returns the body of the answer.
func send(t *testing.T, path, body string) string {
	t.Helper()
	server := httptest.NewServer(providers.New(func(method, path string) { t.Logf("unknown: %s %s", method, path) }))
	t.Cleanup(server.Close)
	answer, err := http.Post(server.URL+path, "application/json", strings.NewReader(body))
	check.Must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	check.Must(t, err)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s", path, answer.Status, text)
	}
	return string(text)
}

const (
	words  = `This is the answer: `
	search = `"name": "search", "description": "", %: {"type": "object", "properties": {"query": {"type": "string"}}}`
)

// TestAnswers checks that each interface has each kind of answer, whole and in a stream.
func TestAnswers(t *testing.T) {
	t.Parallel()
	ask := func(question string) string { return `{"role": "user", "content": "` + question + `"}` }
	openai := strings.Replace(search, "%", `"parameters"`, 1)
	anthropic := strings.Replace(search, "%", `"input_schema"`, 1)
	for name, c := range map[string]struct{ path, body, whole, streamed string }{
		"chat completions": {"/v1/chat/completions", `"messages": [` + ask("now, quickly") + `]`, words, `"content":"answer: "`},
		"responses":        {"/v1/responses", `"input": [` + ask("now, quickly") + `]`, words, `"delta":"answer: "`},
		"messages":         {"/v1/messages", `"messages": [` + ask("now, quickly") + `]`, words, `"text":"answer: "`},
		"an object of chat completions": {
			"/v1/chat/completions", `"response_format": {"type": "json_object"}, "messages": [` + ask("now, quickly") + `]`, `"content":"{}"`, `"content":"{}"`,
		},
		"a tool of chat completions": {
			"/v1/chat/completions", `"tools": [{"type": "function", "function": {` + openai + `}}], "messages": [` + ask("use the tool search") + `]`,
			`{\"query\":\"a query, quickly\"}`, `"finish_reason":"tool_calls"`,
		},
		"a tool of responses": {
			"/v1/responses", `"tools": [{"type": "function", ` + openai + `}], "tool_choice": "required", "input": [` + ask("hello") + `]`,
			`{\"query\":\"a query, quickly\"}`, `response.function_call_arguments.done`,
		},
		"a tool of messages": {
			"/v1/messages", `"tools": [{` + anthropic + `}], "tool_choice": {"type": "any"}, "messages": [` + ask("hello") + `]`,
			`"input":{"query":"a query, quickly"}`, `"stop_reason":"tool_use"`,
		},
		"a structured output": {
			"/v1/chat/completions", `"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object", "properties": ` +
				`{"next": {"enum": ["search", "FINISH"]}, "need_more": {"type": "boolean"}, "steps": {"type": "array", "items": {"type": "string"}}}}}}, "messages": [` + ask("slowly") + `]`,
			`{\"need_more\":false,\"next\":\"FINISH\",\"steps\":[\"a steps, slowly\"]}`, `\"next\":\"FINISH\"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := send(t, c.path, `{"model": "any", `+c.body+`}`); !strings.Contains(got, c.whole) || !json.Valid([]byte(got)) {
				t.Errorf("the whole answer is %s, want %s", got, c.whole)
			}
			if got := send(t, c.path, `{"model": "any", "stream": true, `+c.body+`}`); !strings.Contains(got, c.streamed) || !strings.HasPrefix(got, "event: ") && !strings.HasPrefix(got, "data: ") {
				t.Errorf("the stream is %s, want %s", got, c.streamed)
			}
		})
	}
}

func TestEmbeddings(t *testing.T) {
	t.Parallel()
	first := send(t, "/v1/embeddings", `{"input": ["one", "two"], "dimensions": 8}`)
	var body struct {
		Data []struct {
			Embedding []float64 `json:"embedding"`
		} `json:"data"`
	}
	check.Must(t, json.Unmarshal([]byte(first), &body))
	if len(body.Data) != 2 || len(body.Data[0].Embedding) != 8 {
		t.Errorf("the embeddings are %s", first)
	}
	if again := send(t, "/v1/embeddings", `{"input": ["one", "two"], "dimensions": 8}`); again != first {
		t.Errorf("the embeddings are not the same again: %s", again)
	}
}

//go:build agents

package e2e_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
)

// applications are repositories with an HTTP application of their own, by language: files by name.
var applications = map[string]map[string]string{
	"python": {
		"framework.json": `{"dependencies": ["."], "graphs": {"agent": "./agent.py:graph"},
			"http": {"app": "./webapp.py:app", "disable_store": true, "configurable_headers": {"include": ["accept-language"]}, "cors": {"allow_origins": ["https://app.test"]}}}`,
		"requirements.txt": "langgraph>=1,<2\nfastapi\n",
		"agent.py": `from typing import TypedDict
from langgraph.graph import START, StateGraph

class State(TypedDict):
    text: str

def node(state, config):
    return {"text": config["configurable"].get("accept-language", "no header")}

graph = StateGraph(State).add_node("a", node).add_edge(START, "a").compile()
`,
		"webapp.py": `import asyncio
from contextlib import asynccontextmanager
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from langgraph_sdk import get_client

@asynccontextmanager
async def lifespan(app):
    yield {"word": "started"}

app = FastAPI(lifespan=lifespan)

@app.post("/hello/{name}")
async def hello(name: str, request: Request):
    return {"name": name, "word": request.state.word, "key": request.headers.get("x-api-key"), "body": await request.json()}

@app.get("/counts")
async def counts():
    async def lines():
        for i in range(3):
            yield f"data: {i}\n\n"
            await asyncio.sleep(0.01)
    return StreamingResponse(lines(), media_type="text/event-stream")

@app.get("/assistants/{name}/graph")
async def shadow(name: str):
    return {"mine": name}

@app.post("/calls")
async def calls():
    return {"assistants": [a["graph_id"] for a in await get_client().assistants.search()]}
`,
	},
}

// TestAgentsOwnApplications deploys repositories with an HTTP application of their own.
func TestAgentsOwnApplications(t *testing.T) {
	s := newAgentServer(t)
	for language, files := range applications {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			repo := newRepository(t)
			for name, text := range files {
				repo.write(t, name, text)
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

package e2e_test

import (
	"net/http"
	"testing"
)

// TestAssistantsAreTools lists the agent as a tool of the Model Context Protocol and calls it.
func TestAssistantsAreTools(t *testing.T) {
	t.Parallel()
	agent := shared(t)
	var listed struct {
		Result struct{ Tools []struct{ Name string } }
	}
	agent.server.call(t, http.StatusOK, "POST", agent.url+"/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, &listed)
	if len(listed.Result.Tools) == 0 || listed.Result.Tools[0].Name != "agent" {
		t.Fatalf("got the tools %+v", listed)
	}
	input := ask("what's the weather in sf?", fast)["input"]
	var called struct {
		Result struct {
			Values  struct{ Messages messages } `json:"structuredContent"`
			IsError bool
		}
	}
	agent.server.call(t, http.StatusOK, "POST", agent.url+"/mcp", map[string]any{
		"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": map[string]any{"name": "agent", "arguments": input},
	}, &called)
	if said := called.Result.Values.Messages; called.Result.IsError || len(said) < 2 || said[len(said)-1].Type != "ai" {
		t.Errorf("got %+v", called)
	}
}

package e2e_test

import (
	"net/http"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestEachFlagOfInfoIsTrue uses each feature that /info may announce. A server that announces a
// feature has it, and a server that has a feature announces it.
func TestEachFlagOfInfoIsTrue(t *testing.T) {
	t.Parallel()
	agent := shared(t)
	s := agent.server
	status := func(method, address string, body any, header ...string) int {
		got, err := s.send(t.Context(), method, address, body, header...)
		check.Must(t, err)
		if err := got.Body.Close(); err != nil {
			t.Error(err)
		}
		return got.StatusCode
	}
	has := map[string]func() bool{
		"assistants": func() bool {
			return status("POST", agent.url+"/assistants/search", map[string]any{}) == http.StatusOK
		},
		"crons": func() bool {
			return status("POST", agent.url+"/runs/crons/search", map[string]any{}) == http.StatusOK
		},
		"store": func() bool {
			return status("POST", agent.url+"/store/namespaces", map[string]any{}) == http.StatusOK
		},
		"metrics": func() bool { return status("GET", agent.url+"/metrics", nil) == http.StatusOK },
		"strict_resume": func() bool {
			unasked := map[string]any{"assistant_id": "agent", "command": map[string]any{"resume": "yes"}, "strict_resume": true}
			return status("POST", agent.thread(t).url+"/runs", unasked) == http.StatusConflict
		},
		"thread_streaming": func() bool {
			return status("POST", agent.thread(t).url+"/stream/events", map[string]any{"channels": []string{"lifecycle"}}) == http.StatusOK
		},
		"thread_streaming_websocket": func() bool {
			return status("GET", agent.thread(t).url+"/stream/events", nil, "Connection", "Upgrade", "Upgrade", "websocket",
				"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==") == http.StatusSwitchingProtocols
		},
	}
	var info struct{ Flags map[string]bool }
	s.call(t, http.StatusOK, "GET", agent.url+"/info", nil, &info)
	for name, announced := range info.Flags {
		if has[name] == nil {
			t.Errorf("nothing here proves the flag %s", name)
			continue
		}
		if works := has[name](); works != announced {
			t.Errorf("/info says %s: %v, but it works: %v", name, announced, works)
		}
	}
	for name := range has {
		if _, named := info.Flags[name]; !named {
			t.Errorf("/info does not name %s", name)
		}
	}
}

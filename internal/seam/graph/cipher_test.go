package graph_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// TestCipher asks an agent that answers as the contract says, and agents that do not.
func TestCipher(t *testing.T) {
	t.Parallel()
	status, answer := http.StatusOK, `{"values": ["AAH/", ""], "context": {"tenant": "a"}}`
	var asked graph.Invocation
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &asked)
		}
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer agent.Close()
	ask := func() (graph.Ciphered, error) {
		return graph.NewClient(nil).Cipher(t.Context(), compute.Endpoint{URL: agent.URL}, graph.OperationEncrypt, graph.Encryption{
			User: json.RawMessage(`{"identity":"ada"}`), Values: []graph.EncryptedValue{{Model: "run", Field: "kwargs", JSON: true, Data: []byte("{}")}, {Data: []byte{0}}},
		}, nil)
	}
	got, err := ask()
	if err != nil || string(got.Values[0]) != "\x00\x01\xff" || len(got.Values[1]) != 0 || string(got.Context) != `{"tenant": "a"}` {
		t.Errorf("got %+v, %v", got, err)
	}
	if asked.Operation != graph.OperationEncrypt || string(asked.Encryption.Values[0].Data) != "{}" || string(asked.Encryption.User) != `{"identity":"ada"}` {
		t.Errorf("asked %+v", asked.Encryption)
	}
	for _, wrong := range []string{`{"values": [""]}`, `{"values": [1, 2]}`, `{}`, `[]`, ``} {
		answer = wrong
		if _, err := ask(); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
	status = http.StatusInternalServerError
	if _, err := ask(); err == nil {
		t.Error("a failure is taken")
	} else if _, refused := errors.AsType[*graph.RefusedError](err); !refused {
		t.Errorf("got %v", err)
	}
}

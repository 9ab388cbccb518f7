//go:build agents

package e2e_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// notes holds the lines that agents write for a test. Agents must not write the test's files,
// so they send their lines to an address; the answer contains all lines so far.
type notes struct {
	address string

	mu   sync.Mutex
	text bytes.Buffer
}

func newNotes(t *testing.T) *notes {
	t.Helper()
	n := &notes{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("an agent's note: %v", err)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.text.Write(sent)
		_, _ = w.Write(n.text.Bytes()) // an agent that was killed reads no answer
	}))
	t.Cleanup(server.Close)
	n.address = server.URL
	return n
}

// read returns all lines.
func (n *notes) read() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// clear forgets all lines.
func (n *notes) clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text.Reset()
}

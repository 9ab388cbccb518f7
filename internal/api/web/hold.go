package web

import (
	"net/http"
	"strings"
	"sync"
)

// Values of x-holds-connection, the member of the contract that says when an operation holds
// its connection while it waits.
const (
	// holdsAlways is for streams, and for answers that the client always waits for.
	holdsAlways = "always"
	// holdsStream is for answers that are streams for clients that accept streams.
	holdsStream = "stream"
	// holdsWait is for answers that the client waits for if the query has the parameter wait.
	holdsWait = "wait"
	// holdsInTurn is for answers that the server asks itself for: its own requests hold their
	// connections, and would not find a place if the client's request had taken the last one.
	holdsInTurn = "in-turn"
)

// WantsStream reports whether a request prefers a stream of events to JSON.
func WantsStream(r *http.Request) bool {
	return strings.Contains(strings.ToLower(strings.Join(r.Header.Values("Accept"), ",")), "text/event-stream")
}

// holds reports whether a request to the operation holds its connection.
func (o *operation) holds(r *http.Request) bool {
	switch o.holding {
	case holdsAlways:
		return true
	case holdsStream:
		return WantsStream(r)
	case holdsWait:
		return r.URL.Query().Has("wait")
	case holdsInTurn:
		return false
	}
	return false
}

// holding is Holding for an operation that holds its connection for some requests only.
func (m *Mux) holding(o *operation, next http.Handler) http.Handler {
	held := m.Holding(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if o.holds(r) {
			held.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Holding is the middleware before a handler that holds its connection. The workspace has a
// limited number of places for such connections; a connection gives its place back when it
// ends, also when the client goes. Beyond the quota a request is refused before it does
// anything.
func (m *Mux) Holding(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m.limiter == nil {
			next.ServeHTTP(w, r)
			return
		}
		workspace := ownerOf(r)
		if !m.limiter.open.take(workspace, m.limiter.quotas.StreamsAtOnce()) {
			m.Error(w, r, m.limiter.quotas.RefuseStream())
			return
		}
		defer m.limiter.open.giveBack(workspace)
		next.ServeHTTP(w, r)
	})
}

// waiters counts the waiting connections of each workspace.
type waiters struct {
	mu    sync.Mutex
	taken map[string]int64
}

func (w *waiters) take(workspace string, most int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.taken[workspace] >= most {
		return false
	}
	w.taken[workspace]++
	return true
}

func (w *waiters) giveBack(workspace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.taken[workspace]--; w.taken[workspace] == 0 {
		delete(w.taken, workspace)
	}
}

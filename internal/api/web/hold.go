package web

import (
	"cmp"
	"context"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/slipway-run/slipway/internal/tenant/quota"
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

// WantsStream reports whether a request prefers a stream of events to JSON: its Accept header
// names the stream's type, with a quality value that is not below that of JSON (RFC 9110, section
// 12.4.2).
func WantsStream(r *http.Request) bool {
	qualities := map[string]float64{}
	for item := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		mediaType, parameters, err := mime.ParseMediaType(item)
		if err != nil {
			continue
		}
		quality, err := strconv.ParseFloat(cmp.Or(parameters["q"], "1"), 64)
		if err == nil {
			qualities[mediaType] = max(qualities[mediaType], quality)
		}
	}
	stream := qualities["text/event-stream"]
	return stream > 0 && stream >= qualities["application/json"]
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
// limited number of places for such connections, and fewer for those of one thread; a connection
// gives its place back when it ends, also when the client goes. Beyond the quota, or if there is no
// memory for one more connection, a request is refused before it does anything.
func (m *Mux) Holding(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leave, err := m.hold(r)
		if err != nil {
			m.Error(w, r, err)
			return
		}
		defer leave()
		next.ServeHTTP(w, r)
	})
}

// hold takes the places of a connection, and its memory.
func (m *Mux) hold(r *http.Request) (leave func(), err error) {
	leave = func() {}
	if m.Limiter != nil {
		leave, err = m.Limiter.hold(r.Context(), ownerOf(r), strings.ToLower(r.PathValue("deployment_id")), strings.ToLower(r.PathValue("thread_id")))
		if err != nil {
			return nil, err
		}
	}
	return m.within(r, ownerOf(r), leave)
}

// HoldPlace takes one of the workspace's places for connections, as Holding does, for a request
// that was not expected to wait. If the workspace has no place left, the error is its refusal.
func (m *Mux) HoldPlace(ctx context.Context, workspace string) (leave func(), err error) {
	if m.Limiter == nil {
		return func() {}, nil
	}
	return m.Limiter.hold(ctx, workspace, "", "")
}

// within takes the memory of a connection that has its places. leave gives the places back.
func (m *Mux) within(r *http.Request, owner string, leave func()) (leaveAll func(), err error) {
	room, err := m.roomToWait(r, owner)
	if err != nil {
		leave()
		return nil, err
	}
	return func() {
		room.Close()
		leave()
	}, nil
}

// hold takes the places of a connection.
func (l *Limiter) hold(ctx context.Context, workspace, deployment, thread string) (leave func(), err error) {
	leave, err = l.holdHere(workspace, deployment, thread)
	return l.everywhere(leave, err, func() (func(), error) { return l.Shared.Hold(ctx, workspace, deployment, thread) })
}

// everywhere also takes the places that all processes share, if this process has given its own: so
// a connection that this process refuses costs the other processes nothing.
func (l *Limiter) everywhere(leaveHere func(), refused error, share func() (func(), error)) (leave func(), err error) {
	if refused != nil || l.Shared == nil {
		return leaveHere, refused
	}
	leaveShared, err := share()
	if err != nil {
		leaveHere()
		return nil, err
	}
	return func() {
		leaveShared()
		leaveHere()
	}, nil
}

// holdHere takes the places of a connection in this process.
func (l *Limiter) holdHere(workspace, deployment, thread string) (leave func(), err error) {
	if !l.open.take(workspace, l.quotas.Of(quota.Streams)) {
		return nil, l.quotas.Refuse(quota.Streams)
	}
	if thread == "" {
		return func() { l.open.giveBack(workspace) }, nil
	}
	of := strings.Join([]string{workspace, deployment, thread}, "\x00")
	if !l.open.take(of, l.quotas.Of(quota.ThreadStreams)) {
		l.open.giveBack(workspace)
		return nil, l.quotas.Refuse(quota.ThreadStreams)
	}
	return func() {
		l.open.giveBack(of)
		l.open.giveBack(workspace)
	}, nil
}

// waiters counts the waiting connections of each workspace and of each thread.
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

func (w *waiters) of(workspace string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.taken[workspace]
}

func (w *waiters) giveBack(workspace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.taken[workspace]--; w.taken[workspace] == 0 {
		delete(w.taken, workspace)
	}
}

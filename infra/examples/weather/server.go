package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxBodyBytes bounds an invocation, which may carry the whole state of its thread. promisedBytes
// is how much room is made for one before it is there.
const (
	maxBodyBytes  = 64 << 20
	promisedBytes = 1 << 20
)

// graphs are the graphs that framework.json names.
var graphs = map[string]graph{"agent": agent}

// graph runs on an invocation and emits what it does. It stops as soon as ctx ends.
type graph func(ctx context.Context, in invocation, emit emitter) error

// emitter sends one event. Its error means that the caller has gone, and ends the graph.
type emitter func(event string, data any) error

//go:embed describe.json
var description []byte

// invocation is the part of the body of POST /invocations that this agent reads.
type invocation struct {
	Operation string `json:"operation"`
	Graph     string `json:"graph"`
	ThreadID  string `json:"thread_id"`
	RunID     string `json:"run_id"`
	Attempt   int    `json:"attempt"`
	State     struct {
		// Values is the thread's state with the run's input folded in.
		Values struct {
			Messages []json.RawMessage `json:"messages"`
		} `json:"values"`
	} `json:"state"`
	Config     json.RawMessage `json:"config"`
	StreamMode []string        `json:"stream_mode"`
}

// streams reports whether the caller wants events of that mode besides `updates`.
func (in invocation) streams(mode string) bool { return slices.Contains(in.StreamMode, mode) }

// server speaks the container contract. From one invocation to the next it holds nothing.
type server struct {
	mux    *http.ServeMux
	token  string
	health *health
}

// newServer accepts every caller if token is empty.
func newServer(token string, now func() time.Time) http.Handler {
	s := &server{mux: http.NewServeMux(), token: token, health: newHealth(now)}
	s.mux.HandleFunc("GET /ping", s.ping)
	s.mux.HandleFunc("POST /invocations", s.invoke)
	return s.mux
}

func (s *server) ping(w http.ResponseWriter, _ *http.Request) {
	status, since := s.health.status()
	writeJSON(w, http.StatusOK, map[string]any{"status": status, "time_of_last_update": since.Unix()})
}

func (s *server) invoke(w http.ResponseWriter, r *http.Request) {
	if !s.authorized(r) {
		refuse(w, http.StatusUnauthorized, "the bearer token is missing or wrong")
		return
	}
	in, status, err := readInvocation(w, r)
	if err != nil {
		refuse(w, status, err.Error())
		return
	}
	switch in.Operation {
	case "", "run":
		s.run(w, r, in)
	case "describe":
		w.Header().Set("Content-Type", "application/json")
		w.Write(description)
	default:
		refuse(w, http.StatusBadRequest, fmt.Sprintf("unknown operation %q", in.Operation))
	}
}

// authorized compares digests, so that the time it takes says nothing about the token, its length
// included.
func (s *server) authorized(r *http.Request) bool {
	if s.token == "" {
		return true
	}
	got, want := sha256.Sum256([]byte(r.Header.Get("Authorization"))), sha256.Sum256([]byte("Bearer "+s.token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// readInvocation returns the status to refuse with when there is an error.
func readInvocation(w http.ResponseWriter, r *http.Request) (invocation, int, error) {
	var body bytes.Buffer
	// Long threads are not copied again and again.
	body.Grow(int(min(max(r.ContentLength, 0), promisedBytes)) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return invocation{}, http.StatusRequestEntityTooLarge, fmt.Errorf("the body is larger than %d bytes", tooLarge.Limit)
	}
	if err != nil {
		return invocation{}, http.StatusBadRequest, fmt.Errorf("read body: %w", err)
	}
	var in invocation
	if err := json.Unmarshal(body.Bytes(), &in); err != nil {
		return invocation{}, http.StatusBadRequest, fmt.Errorf("decode body: %w", err)
	}
	return in, http.StatusOK, nil
}

// run streams what the graph emits. A graph that fails ends the stream with an `error` event; the
// status is 200 by then.
func (s *server) run(w http.ResponseWriter, r *http.Request, in invocation) {
	run, ok := graphs[in.Graph]
	if !ok {
		refuse(w, http.StatusNotFound, fmt.Sprintf("unknown graph %q", in.Graph))
		return
	}
	s.health.begin()
	defer s.health.end()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	emit, stop := events(w, silence)
	defer stop()
	err := protect(func() error { return run(r.Context(), in, emit) })
	if err == nil || r.Context().Err() != nil {
		return
	}
	slog.Error("graph failed", "graph", in.Graph, "run", in.RunID, "error", err)
	if err := emit("error", map[string]string{"error": errorClass(err), "message": err.Error()}); err != nil {
		slog.Info("caller has gone", "run", in.RunID, "error", err)
	}
}

// silence is how long nothing is said before a comment is sent: load balancers cut a connection
// without traffic, some of them after 60 s.
const silence = 15 * time.Second

// events returns an emitter that sends each event at once, so that a token is on its way when the
// model has it. A silence is filled with comments until stop is called.
func events(w http.ResponseWriter, silence time.Duration) (emit emitter, stop func()) {
	s := &stream{out: w, flush: http.NewResponseController(w).Flush, silence: silence}
	s.mu.Lock() // the timer may go off before it is noted
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(silence, s.beat)
	return s.emit, s.stop
}

// stream writes events and comments. It belongs to one invocation.
type stream struct {
	mu    sync.Mutex
	out   http.ResponseWriter
	flush func() error
	// timer goes off after a silence.
	timer   *time.Timer
	silence time.Duration
	ended   bool
}

func (s *stream) emit(event string, data any) error {
	encoded, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode event %s: %w", event, err)
	}
	return s.write(fmt.Sprintf("event: %s\ndata: %s\n\n", event, encoded))
}

// beat sends a comment. If the caller has gone, the next event tells the graph.
func (s *stream) beat() { _ = s.write(": heartbeat\n\n") }

func (s *stream) write(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil
	}
	if _, err := io.WriteString(s.out, text); err != nil {
		return err
	}
	s.timer.Reset(s.silence)
	return s.flush()
}

// stop ends the comments; none is being written when it returns.
func (s *stream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.timer.Stop()
}

// protect turns a panic of the graph into an error, so that one run cannot end the others.
func protect(run func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			slog.Error("graph panicked", "cause", cause, "stack", string(debug.Stack()))
			err = &graphError{class: "Panic", message: fmt.Sprint(cause)}
		}
	}()
	return run()
}

// graphError is an error with the class that the `error` event shows.
type graphError struct{ class, message string }

func (e *graphError) Error() string { return e.message }

func errorClass(err error) string {
	var failed *graphError
	if errors.As(err, &failed) {
		return failed.class
	}
	return "GraphError"
}

func refuse(w http.ResponseWriter, status int, message string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, status, map[string]string{"error": strings.ReplaceAll(http.StatusText(status), " ", ""), "message": message})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		slog.Info("caller has gone", "error", err)
	}
}

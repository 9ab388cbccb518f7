package agenthost

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/wire"
)

// maxBody is the most bytes that the description of a release or a build may have.
const maxBody = 4 << 20

// Config has the settings of a Host.
type Config struct {
	// Dir is the directory for applied releases, sealed by Sealer. No other host may use it.
	Dir    string
	Sealer secret.Sealer
	// Token is the bearer token that the host's own clients must show.
	Token   string
	Target  compute.MachineTarget
	Builder build.Builder
	// Uploads are the sources of builds without a repository; nil accepts no uploads.
	Uploads Uploads
	// Logs are the output of builds and agents; nil shows no output.
	Logs Logs
	// Transport reaches the agents of Target; nil stands for graph.NewTransport().
	Transport *http.Transport
	// RoomWait is how long an invocation waits if all agents of its release are busy; default 30 s.
	RoomWait time.Duration
	Log      *slog.Logger
}

// Logs can be read, and added to.
type Logs interface {
	revisionlog.Reader
	revisionlog.Appender
}

// Host is the http.Handler. Make one with New.
type Host struct {
	cfg    Config
	mux    *web.Mux
	agents *http.Transport
	// order keeps the releases in the target and the releases in files equal, also when a
	// release is applied and removed at once.
	order    sync.Mutex
	releases releaseFiles
	ends     ends
}

// New returns a host. It starts nothing before Restore.
func New(cfg Config) (*Host, error) {
	if cfg.Token == "" {
		return nil, errors.New("open agent host: it has no token, so anybody could run programs")
	}
	cfg.RoomWait = cmp.Or(cfg.RoomWait, 30*time.Second)
	h := &Host{cfg: cfg, mux: web.NewMux(cfg.Log), agents: cmp.Or(cfg.Transport, graph.NewTransport()), releases: releaseFiles{cfg.Dir, cfg.Sealer}}
	if err := h.releases.open(); err != nil {
		return nil, fmt.Errorf("open agent host: %w", err)
	}
	for pattern, handle := range map[string]func(*http.Request) (any, error){
		"POST " + wire.Releases:  h.apply,
		"GET " + wire.Release:    h.awaitRelease,
		"DELETE " + wire.Release: h.remove,
		"GET " + wire.Relapse:    h.awaitRelapse,
		"PUT " + wire.Restart:    h.restart,
		"GET " + wire.Restart:    h.awaitRestart,
		"POST " + wire.Ends:      taking(h.listEnds),
		"POST " + wire.Builds:    taking(h.startBuild),
		"GET " + wire.Build:      h.awaitBuild,
		"DELETE " + wire.Build:   h.removeBuild,
		"POST " + wire.Log:       taking(h.readLog),
		"POST " + wire.LogLines:  taking(h.appendLog),
	} {
		h.mux.Handle(pattern, h.own(handle))
	}
	h.mux.Handle("GET "+wire.LogChanges, h.guarded(h.watchLog))
	if cfg.Uploads != nil {
		h.mux.Handle("POST "+wire.Uploads, h.own(taking(h.grantUpload)))
		h.mux.Handle("POST "+wire.UploadsOf, h.own(h.listUploads))
		h.mux.Handle("DELETE "+wire.UploadsOf, h.own(taking(h.removeUploads)))
		h.mux.Handle("DELETE "+wire.UploadsAll, h.own(h.eraseUploads))
		h.mux.Handle("PUT "+wire.UploadsOf+"/{object}", cfg.Uploads.Handler(h.mux.Error))
	}
	h.mux.Handle("POST "+wire.Agent+invocations, h.agent("Authorization", false))
	h.mux.Handle("GET "+wire.Agent+ping, h.agent("", false))
	for _, path := range []string{graph.PathApp, graph.PathApp + "/{rest...}"} {
		h.mux.Handle(wire.Agent+path, h.agent(graph.HeaderVisit, true))
	}
	return h, nil
}

// ServeHTTP implements http.Handler.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Close closes idle connections to agents. It does not close the target and the builder: their
// owner closes them.
func (h *Host) Close() { h.agents.CloseIdleConnections() }

// own serves an operation of the host's own API, which returns its answer, or nil.
func (h *Host) own(handle func(*http.Request) (any, error)) http.HandlerFunc {
	return h.guarded(func(w http.ResponseWriter, r *http.Request) error {
		answer, err := handle(r)
		switch {
		case err != nil:
			return err
		case answer == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			respond(w, http.StatusOK, answer)
		}
		return nil
	})
}

// guarded wants the token of the host's own API. Its errors are answered in full: a caller with
// the token may know them, and needs them to tell a person why a deployment fails.
func (h *Host) guarded(handle func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := errToken
		if isToken(r.Header.Get("Authorization"), h.cfg.Token) {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			err = handle(w, r)
		}
		if err != nil {
			h.fail(w, r, err)
		}
	}
}

func (h *Host) fail(w http.ResponseWriter, r *http.Request, err error) {
	var known *fault.Error
	if errors.As(err, &known) || r.Context().Err() != nil {
		h.mux.Error(w, r, err)
		return
	}
	h.cfg.Log.ErrorContext(r.Context(), "request failed", "route", r.Pattern, "request_id", web.RequestID(r.Context()), "error", err)
	respond(w, http.StatusInternalServerError, wire.Problem{Detail: err.Error()})
}

// errToken answers a request without the right bearer token.
var errToken error = fault.New(fault.Unauthorized, "The bearer token is missing or wrong.")

// isToken compares hashes, so that the time of the comparison does not even reveal the length.
func isToken(authorization, want string) bool {
	got, ok := strings.CutPrefix(authorization, "Bearer ")
	gotHash, wantHash := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(gotHash[:], wantHash[:]) == 1 && ok
}

// taking reads the request's body for an operation.
func taking[T any](handle func(*http.Request, T) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		body, err := decode[T](r)
		if err != nil {
			return nil, err
		}
		return handle(r, body)
	}
}

// decode reads a request's body. The error contains no part of the body.
func decode[T any](r *http.Request) (body T, err error) {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return body, fault.New(fault.TooLarge, "The body has more than %d bytes.", tooLarge.Limit)
	case err != nil:
		return body, fault.New(fault.Invalid, "This version of the host does not take such a body.")
	}
	return body, nil
}

// await waits for an answer until the time when the caller wants it.
func await[T any](r *http.Request, wait func(context.Context) (T, error)) (any, error) {
	limit, err := time.ParseDuration(cmp.Or(r.URL.Query().Get(wire.Wait), "0s"))
	if err != nil {
		return nil, fault.New(fault.Invalid, "The parameter %s is not a duration.", wire.Wait)
	}
	ctx, cancel := context.WithTimeout(r.Context(), min(limit, wire.MaxWait))
	defer cancel()
	return wait(ctx)
}

func respond(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		// Answers hold strings, lists and maps of strings.
		panic("agenthost: an answer does not encode: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that is gone needs no answer
}

package web

import (
	"cmp"
	"maps"
	"net/http"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// RepositoryFault is a fault that a repository's own code answers in its own way: with a status and
// with headers that the kind of the fault does not have.
type RepositoryFault struct {
	Fault  *fault.Error
	Status int
	Header http.Header
}

func (f *RepositoryFault) Error() string { return f.Fault.Error() }

// Unwrap returns the fault, for callers that act upon its kind.
func (f *RepositoryFault) Unwrap() error { return f.Fault }

func (f *RepositoryFault) answer(w http.ResponseWriter) {
	maps.Copy(w.Header(), f.Header)
	if f.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", cmp.Or(w.Header().Get("WWW-Authenticate"), "Bearer"))
	}
	respond(w, f.Status, f.Fault.Message)
}

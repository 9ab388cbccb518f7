package caller

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// headerCaller names the user of the run that an agent acts for, as JSON in base64. In
// requests of other callers, the header counts for nothing.
const headerCaller = "X-Slipway-Caller"

// User returns the user of a request as the platform knows it: the API key's id, the subject
// of a token, or the user of the run that an agent acts for.
func User(p workspace.Principal, header http.Header) []byte {
	if user := ActingFor(p, header); user != nil {
		return user
	}
	return record.Encode(map[string]any{"identity": cmp.Or(p.Key, p.Subject), "permissions": []string{string(p.Role)}})
}

// ActingFor returns the user of the run that an agent acts for; nil for other callers, and for an
// agent that acts for itself.
func ActingFor(p workspace.Principal, header http.Header) []byte {
	if p.Role != workspace.Agent {
		return nil
	}
	user, err := base64.URLEncoding.DecodeString(header.Get(headerCaller))
	if members := map[string]any(nil); err != nil || json.Unmarshal(user, &members) != nil || members["identity"] == nil {
		return nil // the agent acts only for itself
	}
	return user
}

// Of returns the data of a user's request that an agent may have.
func Of(user json.RawMessage, header http.Header, settings *build.HTTP) *graph.Caller {
	return &graph.Caller{User: user, Headers: forGraphs(header, settings), Trace: traceOf(header, settings)}
}

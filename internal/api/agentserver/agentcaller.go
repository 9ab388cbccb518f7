package agentserver

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// credentials are the headers beginning with X- that no agent may see, in lower case.
var credentials = []string{strings.ToLower(auth.HeaderKey), strings.ToLower(auth.HeaderTenant), "x-service-key"}

// ofProxies are the prefixes of the names of headers that proxies and the platform add.
var ofProxies = []string{"x-forwarded-", "x-real-ip", "x-amzn-", "x-amz-", "x-slipway-"}

func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

type requestKey struct{}

// requestOf returns the request of an operation that needs credentials.
func requestOf(ctx context.Context) *http.Request { return ctx.Value(requestKey{}).(*http.Request) }

// callerOf returns the data of the request that an agent may have.
func callerOf(ctx context.Context) *graph.Caller {
	header, user := requestOf(ctx).Header, ownUser(ctx)
	if user == nil {
		user = userOf(auth.Of(ctx), header)
	}
	d := served(ctx)
	return &graph.Caller{User: user, Headers: publicHeaders(header, d), Trace: traceOf(header, d.Settings.HTTP)}
}

// headerCaller names the user of the run that an agent acts for, as JSON in base64. In
// requests of other callers, the header counts for nothing.
const headerCaller = "X-Slipway-Caller"

// userOf returns the user of a request as the platform knows it: the API key's id, the subject
// of a token, or the user of the run that an agent acts for.
func userOf(p workspace.Principal, header http.Header) []byte {
	if user := actingFor(p, header); user != nil {
		return user
	}
	return record.Encode(map[string]any{"identity": cmp.Or(p.Key, p.Subject), "permissions": []string{string(p.Role)}})
}

func actingFor(p workspace.Principal, header http.Header) []byte {
	if p.Role != workspace.Agent {
		return nil
	}
	user, err := base64.URLEncoding.DecodeString(header.Get(headerCaller))
	if members := map[string]any(nil); err != nil || json.Unmarshal(user, &members) != nil || members["identity"] == nil {
		return nil // the agent acts only for itself
	}
	return user
}

// publicHeaders returns the headers that a graph reads in its configuration. Checkpoints
// repeat these headers. Headers that proxies add do not come from the client: they would put
// people's addresses into each checkpoint. The configuration file may choose other headers
// instead; credentials of the platform are never among them.
func publicHeaders(header http.Header, d deployment.Deployment) map[string]string {
	public := map[string]string{}
	settings := d.Settings.HTTP
	chosen := settings != nil && len(settings.Include) > 0
	if chosen {
		header = header.Clone()
		withhold(header)
	}
	for name, values := range header {
		lower := strings.ToLower(name)
		if len(values) == 0 || slices.Contains(credentials, lower) {
			continue
		}
		shown, said := settings.Header(lower)
		if !said && !chosen {
			shown = !hasPrefix(lower, ofProxies) && (lower == "user-agent" || strings.HasPrefix(lower, "x-"))
		}
		if shown {
			public[lower] = values[0]
		}
	}
	return public
}

package agentserver

import (
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
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// credentials are the headers beginning with X- that no agent gets to see, in lower case.
var credentials = []string{strings.ToLower(auth.HeaderKey), strings.ToLower(auth.HeaderTenant), "x-service-key"}

// ofProxies begin the names of headers that proxies and the platform add.
var ofProxies = []string{"x-forwarded-", "x-real-ip", "x-amzn-", "x-amz-", "x-slipway-"}

func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

type headerKey struct{}

// asking notes who sent a request, and with which headers, for runs that it asks for.
func asking(ctx context.Context, principal apikey.Principal, header http.Header) context.Context {
	return context.WithValue(auth.With(ctx, principal), headerKey{}, header)
}

// callerOf is what an agent may know of the request, nil outside of one.
func callerOf(ctx context.Context) *graph.Caller {
	header, ok := ctx.Value(headerKey{}).(http.Header)
	if !ok {
		return nil
	}
	user := ownUser(ctx)
	if user == nil {
		user = userOf(auth.Of(ctx), header)
	}
	d, _ := ctx.Value(deploymentKey{}).(deployment.Deployment)
	return &graph.Caller{User: user, Headers: publicHeaders(header, d)}
}

// headerCaller names the user of the run that an agent acts for, as JSON in base64. What others
// send under it counts for nothing.
const headerCaller = "X-Slipway-Caller"

// userOf is the platform's own word on who asks: the API key's id, the subject of a token, or the
// user of the run that an agent acts for.
func userOf(p apikey.Principal, header http.Header) []byte {
	if user := actingFor(p, header); user != nil {
		return user
	}
	identity := p.Key
	if identity == "" {
		identity = p.Subject
	}
	return record.Encode(map[string]any{"identity": identity, "permissions": []string{string(p.Role)}})
}

func actingFor(p apikey.Principal, header http.Header) []byte {
	if p.Role != workspace.Agent {
		return nil
	}
	user, err := base64.URLEncoding.DecodeString(header.Get(headerCaller))
	if members := map[string]any(nil); err != nil || json.Unmarshal(user, &members) != nil || members["identity"] == nil {
		return nil // it acts for nobody but itself
	}
	return user
}

// publicHeaders are those that a graph reads in its configuration, and checkpoints repeat. What
// proxies add is not the client's word: it would put people's addresses into each checkpoint. The
// configuration file may choose others; credentials of the platform are never among them.
func publicHeaders(header http.Header, d deployment.Deployment) map[string]string {
	public := map[string]string{}
	if asked := d.Settings.HTTP; asked != nil && len(asked.Include) > 0 {
		header = header.Clone()
		withhold(header)
		if !d.Auth && header.Get(auth.HeaderTenant) != "" {
			header.Del(auth.HeaderBearer) // it goes with the workspace
		}
	}
	for name, values := range header {
		lower := strings.ToLower(name)
		if len(values) == 0 || slices.Contains(credentials, lower) {
			continue
		}
		shown, said := d.Settings.HTTP.Header(lower)
		if !said {
			shown = !hasPrefix(lower, ofProxies) && (lower == "user-agent" || strings.HasPrefix(lower, "x-"))
		}
		if shown {
			public[lower] = values[0]
		}
	}
	return public
}

package caller

import (
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// credentials are the headers beginning with X- that no agent may see, in lower case.
var credentials = []string{strings.ToLower(auth.HeaderKey), strings.ToLower(auth.HeaderTenant), "x-service-key"}

// ofProxies are the prefixes of the names of headers that proxies and the platform add.
var ofProxies = []string{"x-forwarded-", "x-real-ip", "x-amzn-", "x-amz-", "x-slipway-"}

func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// dotsOfJWT is the number of dots in a signed JWT in its compact form (RFC 7515, section 7.1).
const dotsOfJWT = 2

// Withhold removes the headers that a repository may not see from a request: the credentials
// of the platform, with which the repository could act for their owners, and the headers that
// only the platform sets.
func Withhold(header http.Header) {
	for name := range header {
		if strings.HasPrefix(strings.ToLower(name), "x-slipway-") {
			header.Del(name)
		}
	}
	if auth.IsOwn(header.Get(auth.HeaderKey)) {
		header.Del(auth.HeaderKey)
	}
	switch token, ok := auth.Bearer(header); {
	case ok && strings.Count(token, ".") == dotsOfJWT && id.Valid(header.Get(auth.HeaderTenant)):
		// The platform accepts the token of an issuer, a JWT, only with the id of a workspace. Such
		// tokens of a repository's own users come without it.
		header.Del(auth.HeaderBearer)
		header.Del(auth.HeaderTenant)
	case ok && auth.IsOwn(token):
		header.Del(auth.HeaderBearer)
	}
	var cookies []string
	for _, cookie := range (&http.Request{Header: header}).Cookies() {
		if !auth.IsSessionCookie(cookie.Name) {
			cookies = append(cookies, cookie.Name+"="+cookie.Value)
		}
	}
	header.Del("Cookie")
	if len(cookies) > 0 {
		header.Set("Cookie", strings.Join(cookies, "; "))
	}
}

// Headers returns the headers that a repository's own authentication sees, by name in lower
// case.
func Headers(r *http.Request) map[string]string {
	shown := r.Header.Clone()
	Withhold(shown)
	headers := map[string]string{"host": r.Host}
	for name, values := range shown {
		if len(values) > 0 {
			headers[strings.ToLower(name)] = strings.Join(values, ", ")
		}
	}
	return headers
}

// forGraphs returns the headers that a graph reads in its configuration. Checkpoints
// repeat these headers. Headers that proxies add do not come from the client: they would put
// people's addresses into each checkpoint. The configuration file may choose other headers
// instead; credentials of the platform are never among them.
func forGraphs(header http.Header, settings *build.HTTP) map[string]string {
	public := map[string]string{}
	chosen := settings != nil && len(settings.Include) > 0
	if chosen {
		header = header.Clone()
		Withhold(header)
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

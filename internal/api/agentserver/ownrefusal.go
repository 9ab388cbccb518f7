package agentserver

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

const (
	// maxSaid is how many characters of a handler's text a client gets.
	maxSaid = 500
	// maxSaidHeaders and maxSaidHeaderBytes bound the headers of a handler that a client gets.
	maxSaidHeaders, maxSaidHeaderBytes = 16, 4 << 10
)

// refusal returns the error for a ruling that does not allow a request. The client gets the
// handler's own status, text and headers, as from the framework's server.
func (s server) refusal(ctx context.Context, d deployment.Deployment, ruling graph.Ruling, otherwise fault.Kind, text string) error {
	said := []rune(cmp.Or(ruling.Detail, text))
	f := fault.New(otherwise, "%s", string(said[:min(len(said), maxSaid)]))
	status := ruling.Status
	if status < 400 || status > 599 {
		status = web.Status(f)
	}
	switch {
	case status == http.StatusUnauthorized:
		f.Kind = fault.Unauthorized
	case status == http.StatusForbidden:
		f.Kind = fault.Forbidden
	case status == http.StatusNotFound:
		f.Kind = fault.NotFound
	case status == http.StatusTooManyRequests:
		f.Kind = fault.TooMany
	case status >= http.StatusInternalServerError:
		f.Kind = fault.Unavailable
	}
	return &web.RepositoryFault{Fault: f, Status: status, Header: s.saidHeaders(ctx, d, ruling.Headers)}
}

// saidHeaders returns the headers of a handler that may reach a client: not those that describe
// the connection or the body, which the server writes, and not those of its rules for origins.
func (s server) saidHeaders(ctx context.Context, d deployment.Deployment, given map[string]string) http.Header {
	header, size := http.Header{}, 0
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) || isWritten(http.CanonicalHeaderKey(name)) {
			continue
		}
		if size += len(name) + len(value); size > maxSaidHeaderBytes || len(header) == maxSaidHeaders {
			break
		}
		header.Set(name, value)
	}
	at, err := url.Parse(s.AgentURL(ctx, d.Deployment))
	if err != nil {
		return nil
	}
	confine(header, at.Path)
	return header
}

// isWritten reports whether only the server may write a header of an answer.
func isWritten(name string) bool {
	ofConnection := []string{"Cache-Control", "Connection", "Date", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Vary"}
	return slices.Contains(ofConnection, name) ||
		slices.ContainsFunc([]string{"Access-Control-", "Content-", "X-Content-", "X-Slipway-"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// confine restricts the effects of the headers of a repository to the paths below a path.
func confine(header http.Header, below string) {
	for _, name := range ofServer {
		header.Del(name)
	}
	cookies := (&http.Response{Header: header}).Cookies()
	header.Del("Set-Cookie")
	for _, cookie := range cookies {
		if auth.IsSessionCookie(cookie.Name) {
			continue
		}
		cookie.Path, cookie.Domain = below+"/"+strings.TrimPrefix(cookie.Path, "/"), ""
		header.Add("Set-Cookie", cookie.String())
	}
}

package lambdahost

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// newRequest reads the request that an event is about.
func newRequest(ctx context.Context, event *events.APIGatewayProxyRequest) (*http.Request, error) {
	readable := *event
	readable.Path = escapedPath(event.Path)
	accessor := core.RequestAccessor{}
	r, err := accessor.EventToRequest(readable)
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	// API Gateway does not tell the order of the names.
	r.URL.RawQuery = queryOf(event).Encode()
	r.RequestURI = r.URL.RequestURI()
	r.RemoteAddr = remoteAddr(event.RequestContext.Identity.SourceIP)
	if r.Header.Get("X-Forwarded-Proto") != "http" {
		r.TLS = &tls.ConnectionState{} // the client's connection to API Gateway has TLS
	}
	ctx = withOrigin(ctx, event, r.Header)
	if r.Host == "" {
		r.Host = r.Header.Get("Host")
	}
	r.Header.Del("Host") // net/http removes it, too
	if id := invocation(ctx); id != "" && r.Header.Get("X-Request-Id") == "" {
		r.Header.Set("X-Request-Id", id)
	}
	return r.WithContext(ctx), nil
}

// remoteAddr is the address of a client as net/http writes it. The port is not known.
func remoteAddr(ip string) string {
	if _, err := netip.ParseAddr(ip); err != nil {
		return ip
	}
	return net.JoinHostPort(ip, "0")
}

func queryOf(event *events.APIGatewayProxyRequest) url.Values {
	query := url.Values(maps.Clone(event.MultiValueQueryStringParameters))
	if len(query) == 0 {
		query = url.Values{}
		for name, value := range event.QueryStringParameters {
			query.Set(name, value)
		}
	}
	return query
}

// escapedPath is a path in the form of a request line. Gateways decode the path or leave it as
// it was sent, and do not tell the function which form it is.
func escapedPath(path string) string {
	decoded, err := url.PathUnescape(path)
	if err != nil {
		decoded = path
	}
	return (&url.URL{Path: decoded, RawPath: path}).EscapedPath()
}

// errComeBack ends a request whose time is over.
var errComeBack = fault.New(fault.Unavailable, "This takes longer than one request may last. Try again.")

// withinDeadline returns a context that is cancelled a margin before the invocation's deadline,
// with a cause that tells the client to come back. The margin is at most a quarter of the time
// that is left. The context is cancelled in the way that a stopping server cancels its requests,
// and does not time out, so that handlers and package web have only one case.
func withinDeadline(ctx context.Context, margin time.Duration) (context.Context, context.CancelCauseFunc) {
	deadline, ok := ctx.Deadline()
	ctx, cancel := context.WithCancelCause(ctx)
	if !ok {
		return ctx, cancel
	}
	left := time.Until(deadline)
	timer := time.AfterFunc(left-min(margin, left/4), func() { cancel(errComeBack) })
	context.AfterFunc(ctx, func() { timer.Stop() })
	return ctx, cancel
}

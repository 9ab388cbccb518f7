package outbound

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/slipway-run/slipway/internal/base/guard"
)

// headerDirect is in a CONNECT request for which no proxy of the operator must be used,
// because the connection is not for HTTP.
const headerDirect = "Slipway-Direct"

// ProxyVariable is the variable in which Connect finds the proxy's URL.
const ProxyVariable = "SLIPWAY_PROXY"

// idle bounds the time that an upstream proxy may take to answer.
const idle = 30 * time.Second

type upstreamKey struct{}

// upstreamIn is the operator's proxy for a request in plain HTTP, or nil.
func upstreamIn(ctx context.Context) *url.URL {
	upstream, _ := ctx.Value(upstreamKey{}).(*url.URL)
	return upstream
}

// upstreamOf returns the operator's proxy for a request in plain HTTP, if there is one, and
// checks the host to which that proxy would connect.
func (p *Proxy) upstreamOf(r *http.Request) (*url.URL, error) {
	upstream, err := http.ProxyFromEnvironment(r)
	if upstream == nil || err != nil {
		return nil, err
	}
	return upstream, p.networks.CheckHost(r.Context(), r.URL.Host)
}

// reach makes the connection that a CONNECT request asks for.
func (p *Proxy) reach(ctx context.Context, r *http.Request) (net.Conn, error) {
	if _, _, err := net.SplitHostPort(r.Host); err != nil {
		return nil, fmt.Errorf("no port: %w", err)
	}
	upstream, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: r.Host}})
	if err != nil {
		return nil, err
	}
	if upstream == nil || r.Header.Get(headerDirect) != "" {
		return p.dialer.DialContext(ctx, "tcp", r.Host)
	}
	if err := p.networks.CheckHost(ctx, r.Host); err != nil {
		return nil, err
	}
	return through(ctx, upstream, r.Host, nil)
}

// through returns a connection to the target that an HTTP proxy has made.
func through(ctx context.Context, proxy *url.URL, target string, header http.Header) (_ net.Conn, err error) {
	conn, err := dialProxy(ctx, proxy)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, conn.Close())
		}
	}()
	if err := conn.SetDeadline(time.Now().Add(idle)); err != nil {
		return nil, err
	}
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: target}, Host: target, Header: http.Header{}}
	if header != nil {
		request.Header = header.Clone()
	}
	if proxy.User != nil {
		password, _ := proxy.User.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(proxy.User.Username() + ":" + password))
		request.Header.Set("Proxy-Authorization", "Basic "+credentials)
	}
	if err := request.Write(conn); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, request) //nolint:bodyclose // the body is the connection
	if err != nil {
		return nil, err
	}
	// The body of the answer to a CONNECT request is the connection.
	switch {
	case response.StatusCode == http.StatusForbidden && header != nil:
		return nil, ErrAddress
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the proxy answered with status %d", response.StatusCode)
	}
	return bufferedConn{conn, reader}, conn.SetDeadline(time.Time{})
}

func dialProxy(ctx context.Context, proxy *url.URL) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTimeout}
	switch proxy.Scheme {
	case "http":
		return dialer.DialContext(ctx, "tcp", net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), "80")))
	case "https":
		return (&tls.Dialer{NetDialer: dialer}).DialContext(ctx, "tcp", net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), "443")))
	default:
		return nil, fmt.Errorf("a proxy with the scheme %s is not supported", proxy.Scheme)
	}
}

// bufferedConn is a connection of which some bytes were read ahead.
type bufferedConn struct {
	net.Conn

	reader *bufio.Reader
}

func (c bufferedConn) Read(p []byte) (int, error) { return c.reader.Read(p) }

// CloseWrite ends the sending direction.
func (c bufferedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// Connect joins the input and the output to a host through the Proxy whose URL is in the
// environment. It is for programs that know no proxies but start another program to make their
// connections, for example ssh.
func Connect(ctx context.Context, host, port string, in io.Reader, out io.Writer) error {
	proxy, err := url.Parse(os.Getenv(ProxyVariable))
	if err != nil || proxy.Host == "" {
		return fmt.Errorf("connect: %s has no URL", ProxyVariable)
	}
	conn, err := through(ctx, proxy, net.JoinHostPort(host, port), http.Header{headerDirect: {"true"}})
	if err != nil {
		return fmt.Errorf("connect to %s: %w", host, err)
	}
	defer conn.Close()
	go guard.Func(nil, "copy to the server of a repository", func() {
		_, err := io.Copy(conn, in)
		end(conn, err)
	})()
	_, err = io.Copy(out, conn)
	return err
}

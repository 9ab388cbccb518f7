package outbound

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/base/inbound"
)

// Proxy is an HTTP proxy on a loopback port, for programs that connect to addresses which
// users name, for example git. It connects to the addresses that its networks permit and
// refuses all others, also if a redirect, a submodule or an answer of a DNS server names them.
// Only holders of a Pass may use it.
//
// If the server itself must use a proxy (HTTP_PROXY, HTTPS_PROXY), these connections use it
// too. Then that proxy resolves the names, so a name is checked here only as far as it can be
// resolved here.
type Proxy struct {
	networks Networks
	dialer   *net.Dialer
	listener net.Listener
	server   *http.Server
	forward  *httputil.ReverseProxy
	serving  sync.WaitGroup

	mu     sync.Mutex
	passes map[string]*Pass
}

const (
	// mostConnections is the largest number of connections that a proxy holds at a time. A
	// quarter of the places is for connections without a pass.
	mostConnections = 512
	// idleTimeout is how long a connection may wait for its next request.
	idleTimeout = time.Minute
)

// Pass lets one program, and the programs that it starts, use a Proxy.
type Pass struct {
	proxy      *Proxy
	id, secret string
	ctx        context.Context
	revoke     context.CancelFunc

	mu      sync.Mutex
	refused string
	failed  error
}

// OpenProxy starts a proxy. The caller must Close it.
func OpenProxy(networks Networks) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open proxy: %w", err)
	}
	p := &Proxy{networks: networks, dialer: networks.Dialer(), listener: listener, passes: map[string]*Pass{}}
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(*httputil.ProxyRequest) {}, // the request already names its address
		Transport: &http.Transport{
			DialContext: p.dial, Proxy: func(r *http.Request) (*url.URL, error) { return upstreamIn(r.Context()), nil },
			MaxResponseHeaderBytes: maxHeaders, DisableKeepAlives: true, DisableCompression: true,
		},
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, r *http.Request, err error) { passOf(r).refuse(w, r.Host, err) },
	}
	bounded := inbound.New(listener, inbound.Split(mostConnections))
	p.server = &http.Server{
		Handler: p, ReadHeaderTimeout: dialTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaders,
		ConnContext: bounded.Context, ConnState: bounded.Changed,
	}
	p.serving.Go(func() { _ = p.server.Serve(bounded) }) // it ends with ErrServerClosed
	return p, nil
}

// Close ends all connections.
func (p *Proxy) Close() error {
	p.mu.Lock()
	passes := p.passes
	p.passes = nil
	p.mu.Unlock()
	for _, pass := range passes {
		pass.revoke()
	}
	err := p.server.Close()
	p.serving.Wait()
	return err
}

// NewPass returns a pass that is good until it is closed.
func (p *Proxy) NewPass() *Pass {
	pass := &Pass{proxy: p, id: rand.Text(), secret: rand.Text()}
	pass.ctx, pass.revoke = context.WithCancel(context.Background())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.passes == nil {
		pass.revoke()
		return pass
	}
	p.passes[pass.id] = pass
	return pass
}

// URL is the address of the proxy with the pass's credentials: a secret.
func (p *Pass) URL() string {
	return (&url.URL{Scheme: "http", User: url.UserPassword(p.id, p.secret), Host: p.proxy.listener.Addr().String()}).String()
}

// Refused is the last host that was refused because its address may not be called, or "".
func (p *Pass) Refused() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// Failed is the reason why the last failed connection failed, or nil.
func (p *Pass) Failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// Close ends the connections that were made with the pass.
func (p *Pass) Close() {
	p.revoke()
	p.proxy.mu.Lock()
	defer p.proxy.mu.Unlock()
	delete(p.proxy.passes, p.id)
}

type passKey struct{}

func passOf(r *http.Request) *Pass {
	pass, _ := r.Context().Value(passKey{}).(*Pass)
	return pass
}

// ServeHTTP serves a request of the proxy's users.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pass := p.admit(r)
	if pass != nil {
		inbound.Known(r.Context(), pass.id)
	}
	switch {
	case pass == nil:
		w.Header().Set("Proxy-Authenticate", `Basic realm="slipway"`)
		refuse(w, http.StatusProxyAuthRequired)
	case r.Method == http.MethodConnect:
		p.connect(w, r, pass)
	case r.URL.Scheme != "http" || r.URL.Host == "":
		refuse(w, http.StatusBadRequest)
	default:
		upstream, err := p.upstreamOf(r)
		if err != nil {
			pass.refuse(w, r.Host, err)
			return
		}
		ctx, cancel := context.WithCancel(context.WithValue(context.WithValue(r.Context(), passKey{}, pass), upstreamKey{}, upstream))
		defer cancel()
		defer context.AfterFunc(pass.ctx, cancel)()
		p.forward.ServeHTTP(w, r.WithContext(ctx))
	}
}

// admit returns the pass of a request, or nil.
func (p *Proxy) admit(r *http.Request) *Pass {
	// The header has the form of a header that package http can read.
	id, secret, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
	p.mu.Lock()
	pass := p.passes[id]
	p.mu.Unlock()
	if pass == nil || subtle.ConstantTimeCompare([]byte(secret), []byte(pass.secret)) != 1 {
		return nil
	}
	return pass
}

// dial makes the connection of a request in plain HTTP.
func (p *Proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if upstreamIn(ctx) != nil {
		// The operator has named the address.
		return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
	}
	return p.dialer.DialContext(ctx, network, address)
}

// connect serves CONNECT: it joins the two connections until one of them, or the pass, ends.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request, pass *Pass) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(pass.ctx, cancel)()
	target, err := p.reach(ctx, r)
	if err != nil {
		pass.refuse(w, r.Host, err)
		return
	}
	defer target.Close()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	// The request's context ends with the hijacked request's handler, so only the pass cuts
	// the connections.
	defer context.AfterFunc(pass.ctx, func() { _, _ = here.Close(), target.Close() })()
	join(buffered, here, target) // the server may have read ahead
}

// join copies in both directions. When one side ends its sending, join passes the end on, so
// that the other side can finish.
func join(from io.Reader, here, target net.Conn) {
	var up sync.WaitGroup
	up.Go(guard.Func(nil, "copy to the server of a repository", func() {
		_, err := io.Copy(target, from)
		end(target, err)
	}))
	_, err := io.Copy(here, target)
	end(here, err)
	if err != nil {
		_ = target.Close()
	}
	up.Wait()
}

// end ends one direction of a connection, or the whole connection if it is broken.
func end(conn net.Conn, err error) {
	half, ok := conn.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		_ = conn.Close()
	}
}

// refuse answers a request whose connection was not made, and notes the reason.
func (p *Pass) refuse(w http.ResponseWriter, host string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(err, ErrAddress) {
		p.refused = host
		refuse(w, http.StatusForbidden)
		return
	}
	p.failed = plain(host, err)
	refuse(w, http.StatusBadGateway)
}

// refuse answers a request and ends its connection, without waiting for a body that may never
// come.
func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Connection", "close")
	// A connection that takes no deadline is gone.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	w.WriteHeader(status)
}

// plain says why a connection failed, without the addresses that errors of package net repeat.
func plain(host string, err error) error {
	if name, _, split := net.SplitHostPort(host); split == nil {
		host = name
	}
	if notFound, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Errorf("the host %s: %s", host, notFound.Err)
	}
	if broken, ok := errors.AsType[*net.OpError](err); ok {
		err = broken.Err
	}
	return fmt.Errorf("the host %s: %w", host, err)
}

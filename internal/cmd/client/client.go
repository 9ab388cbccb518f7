// Package client talks to a control plane and to the agent servers beside it, for programs of a
// user: only over HTTP, and with a key or a session.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/sse"
)

const (
	dialTimeout = 5 * time.Second
	// headerTimeout is longer than a server keeps a waiting connection silent.
	headerTimeout = 30 * time.Second
	// maxAnswer is how many bytes of an answer, or of one event, are read at most.
	maxAnswer = 32 << 20
)

// Server holds the address of a server and the caller's credentials.
type Server struct {
	URL string
	// Key is an API key, Bearer the token of a session: a server has one of them.
	Key, Bearer string
	Tenant      string
}

// Client talks to a control plane and to the agent servers beside it.
type Client struct {
	server Server
	http   *http.Client
}

// New returns a client of a server. It follows no redirect: the key, and the secrets in bodies, are
// for the server alone.
func New(server Server) *Client {
	return Over(&http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: headerTimeout,
	}, server)
}

// Over is New with another transport.
func Over(transport http.RoundTripper, server Server) *Client {
	server.URL = strings.TrimSuffix(server.URL, "/")
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{server: server, http: &http.Client{Transport: transport, CheckRedirect: stay}}
}

// Address returns the URL of a path of the server.
func (c *Client) Address(path string) string { return c.server.URL + path }

// UnreachableError says that no server answered.
type UnreachableError struct {
	URL string
	Err error
}

func (e *UnreachableError) Error() string {
	text := fmt.Sprintf("no server answers at %s (%v)", e.URL, e.Err)
	if parsed, err := url.Parse(e.URL); err == nil && parsed.Port() != "" && isHere(parsed.Hostname()) {
		text += "; start one with: slipway serve --listen " + parsed.Host
	}
	return text
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// isHere reports whether a host is this machine.
func isHere(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// APIError says that the server answered with an error.
type APIError struct {
	Request string
	Status  int
	// Detail is the server's explanation, as a sentence.
	Detail string
	// ID identifies the request in the server's log.
	ID string
}

func (e *APIError) Error() string {
	return fmt.Sprintf("%s: %d %s: %s (request %s)", e.Request, e.Status, http.StatusText(e.Status), e.Detail, e.ID)
}

// IsNotFound reports whether the server answered that the object does not exist.
func IsNotFound(err error) bool {
	answer, ok := errors.AsType[*APIError](err)
	return ok && answer.Status == http.StatusNotFound
}

// Call sends a request with a JSON body, unless that is nil, and with further headers, which are
// alternating names and values. It decodes the answer, unless out is nil. The path is a path of the
// server: the key is never sent to another address, even if a caller names another address.
func (c *Client) Call(ctx context.Context, method, path string, body, out any, headers ...string) error {
	response, err := c.Send(ctx, method, path, body, append(headers, "Accept", "application/json")...)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read answer of %s %s: %w", method, path, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("decode answer of %s %s: %w", method, path, err)
	}
	return nil
}

// Send sends a request with further headers, which are alternating names and values, and
// returns an answer with a status below 300. The caller closes its body.
func (c *Client) Send(ctx context.Context, method, path string, body any, headers ...string) (*http.Response, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("%s is no path of the server %s", path, c.server.URL)
	}
	request, err := c.request(ctx, method, c.Address(path), body)
	if err != nil {
		return nil, err
	}
	for ; len(headers) >= 2; headers = headers[2:] {
		request.Header.Set(headers[0], headers[1])
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, unreachable(ctx, c.server.URL, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		defer response.Body.Close()
		return nil, readError(method+" "+request.URL.Path, response)
	}
	return response, nil
}

func (c *Client) request(ctx context.Context, method, address string, body any) (*http.Request, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode body of %s %s: %w", method, address, err)
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.server.Key != "" {
		request.Header.Set("X-Api-Key", c.server.Key)
	}
	if c.server.Bearer != "" {
		request.Header.Set("Authorization", "Bearer "+c.server.Bearer)
	}
	if c.server.Tenant != "" {
		request.Header.Set("X-Tenant-Id", c.server.Tenant)
	}
	return request, nil
}

// unreachable names the address that was tried. A request that ended because of its context
// returns the context's error.
func unreachable(ctx context.Context, address string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	return &UnreachableError{URL: address, Err: err}
}

func readError(request string, response *http.Response) error {
	answer := &APIError{Request: request, Status: response.StatusCode, ID: response.Header.Get("X-Request-Id")}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return errors.Join(answer, err)
	}
	answer.Detail = detailOf(text)
	if to := response.Header.Get("Location"); response.StatusCode < http.StatusBadRequest && to != "" {
		answer.Detail = fmt.Sprintf("the server leads to %q; name that server if you mean it", to)
	}
	return answer
}

// detailOf makes a sentence of an error's body: its detail, or the body itself if it has no
// detail.
func detailOf(body []byte) string {
	var failed struct {
		Detail json.RawMessage `json:"detail"`
	}
	if err := json.Unmarshal(body, &failed); err != nil || failed.Detail == nil {
		return strings.TrimSpace(string(body))
	}
	var sentence string
	if json.Unmarshal(failed.Detail, &sentence) == nil {
		return sentence
	}
	var problems []struct {
		Loc []any  `json:"loc"`
		Msg string `json:"msg"`
	}
	if json.Unmarshal(failed.Detail, &problems) != nil {
		return string(failed.Detail)
	}
	var listed []string
	for _, problem := range problems {
		var where []string
		for _, step := range problem.Loc {
			where = append(where, fmt.Sprint(step))
		}
		listed = append(listed, strings.Join(where, ".")+": "+problem.Msg)
	}
	return strings.Join(listed, "; ")
}

// Stream is an answer that consists of events.
type Stream struct {
	Header http.Header
	events *sse.Reader
	body   io.ReadCloser
}

// Stream sends a request with further headers, and returns the events that answer it. The caller
// closes it.
func (c *Client) Stream(ctx context.Context, method, path string, body any, headers ...string) (*Stream, error) {
	response, err := c.Send(ctx, method, path, body, append(headers, "Accept", "text/event-stream")...) //nolint:bodyclose // Stream.Close does
	if err != nil {
		return nil, err
	}
	return &Stream{Header: response.Header, events: sse.NewReader(response.Body, maxAnswer), body: response.Body}, nil
}

// Next returns the next event. The error is io.EOF only when the server ended the stream.
func (s *Stream) Next(ctx context.Context) (sse.Event, error) {
	event, err := s.events.Next()
	if err != nil && err != io.EOF && ctx.Err() != nil {
		return event, context.Cause(ctx)
	}
	return event, err
}

// Close discards the rest of the stream.
func (s *Stream) Close() error {
	s.events.Release()
	return s.body.Close()
}

// Put sends a body to an address that is itself the permission to do so: without the key,
// which no other server may learn.
func (c *Client) Put(ctx context.Context, address string, body io.Reader, size int64, headers map[string]string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, address, body)
	if err != nil {
		return err
	}
	request.ContentLength = size
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return unreachable(ctx, request.URL.Scheme+"://"+request.URL.Host, err)
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		return readError("PUT "+request.URL.Path, response)
	}
	return nil
}

package outbound

import (
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	dialTimeout = 5 * time.Second
	maxHeaders  = 64 << 10
)

// ErrTooLarge is what reading an answer ends with that is larger than allowed.
var ErrTooLarge = errors.New("the answer is too large")

// Limits of what the other side may make the client do.
type Limits struct {
	// Private are the networks that may be called although their addresses are not public.
	Private Networks
	// Timeout bounds a call, reading the answer included.
	Timeout time.Duration
	// MaxAnswer is how large the body of an answer may be, in bytes.
	MaxAnswer int
}

// NewClient returns a client for addresses that users name. It follows no redirect, as that would
// hand what is sent to whoever the answer names; and it knows no proxy, which would make the
// connection in its place, unchecked.
func NewClient(l Limits) *http.Client {
	return &http.Client{
		Transport: limited{&http.Transport{
			DialContext:            l.Private.Dialer().DialContext,
			TLSHandshakeTimeout:    dialTimeout,
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: maxHeaders,
			// A connection that died while a function was frozen would make a request fail after it
			// was sent, and nobody would know whether it was done.
			DisableKeepAlives: true,
		}, l.MaxAnswer},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       l.Timeout,
	}
}

// limited refuses the rest of a body that is too large.
type limited struct {
	http.RoundTripper

	max int
}

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &limitedBody{answer.Body, l.max}
	return answer, nil
}

type limitedBody struct {
	io.ReadCloser

	left int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, ErrTooLarge
	}
	return n, err
}

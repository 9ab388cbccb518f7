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

// ErrTooLarge is the error of reading an answer that is larger than allowed.
var ErrTooLarge = errors.New("the answer is too large")

// Limits bound the work that the other side may cause for the client.
type Limits struct {
	// Private are the networks that may be called although their addresses are not public.
	Private Networks
	// Timeout bounds a call, reading the answer included.
	Timeout time.Duration
	// MaxAnswer is how large the body of an answer may be, in bytes.
	MaxAnswer int
}

// NewClient returns a client for addresses that users name. It follows no redirect, because
// that would send the request's data to the address that the answer names. It uses no proxy,
// because a proxy would make the connection in the client's place, unchecked.
func NewClient(l Limits) *http.Client {
	return &http.Client{
		Transport: Limited(&http.Transport{
			DialContext:            l.Private.Dialer().DialContext,
			TLSHandshakeTimeout:    dialTimeout,
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: maxHeaders,
			// If a connection died while a function was frozen, a request would fail after it
			// was sent, and the caller would not know whether the request was carried out.
			DisableKeepAlives: true,
		}, l.MaxAnswer),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       l.Timeout,
	}
}

// Limited returns a transport that refuses the rest of a body that is too large, with ErrTooLarge.
func Limited(transport http.RoundTripper, maxAnswer int) http.RoundTripper {
	return limited{transport, maxAnswer}
}

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

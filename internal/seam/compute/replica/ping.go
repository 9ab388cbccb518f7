package replica

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// pingLimit bounds one probe. The pause between two probes grows from one bound to the
	// other.
	pingLimit                  = 5 * time.Second
	pingPauseMin, pingPauseMax = 5 * time.Millisecond, 250 * time.Millisecond
	// pingHeaders bounds the headers of the answer to a probe in bytes.
	pingHeaders = 64 << 10
)

// Dial connects to an address, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// newProbeClient returns a client that goes straight to the agent and leaves no connection open.
func newProbeClient(dial Dial) *http.Client {
	return &http.Client{
		Timeout:       pingLimit,
		Transport:     &http.Transport{DialContext: dial, DisableKeepAlives: true, MaxResponseHeaderBytes: pingHeaders},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

var (
	errEnded  = errors.New("it ended")
	errNoHTTP = errors.New("its answer is not HTTP")
)

// awaitPing returns nil as soon as the agent is healthy. If the process or ctx ends first, it
// returns an error: that the process has ended, or the last error of a probe. It also returns
// that error when the agent has not known GET /ping for ContractLimit.
func (t *Target) awaitPing(ctx context.Context, a Replica) error {
	last := errors.New("it was not asked")
	var foreignSince time.Time
	for pause := pingPauseMin; ; pause = min(pause*3/2, pingPauseMax) {
		answer := t.ping(ctx, a.URL())
		select {
		case <-a.Done():
			return errEnded // if a program answered, it was not the agent
		default:
		}
		if answer == nil {
			return nil
		}
		if ctx.Err() != nil {
			return last
		}
		last = answer
		switch {
		case !foreign(answer):
			foreignSince = time.Time{}
		case foreignSince.IsZero():
			foreignSince = time.Now()
		case time.Since(foreignSince) > t.limits.ContractLimit:
			return last
		}
		select {
		case <-time.After(pause):
		case <-a.Done():
		case <-ctx.Done():
		}
	}
}

// ping sends one probe.
func (t *Target) ping(ctx context.Context, base string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/ping", nil)
	if err != nil {
		return err
	}
	response, err := t.probes.Do(request)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // the reader of the error knows the URL
	}
	// net/http has no type for this error.
	if err != nil && strings.Contains(err.Error(), "malformed HTTP") {
		return fmt.Errorf("%w (%w)", errNoHTTP, err)
	}
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return &answerError{response.StatusCode, response.Status}
	}
	return nil
}

// answerError is the error of an answer whose status is not 200.
type answerError struct {
	code   int
	status string
}

func (e *answerError) Error() string { return "it answered " + e.status }

// foreign reports whether a probe's error means that a program listens which does not know GET
// /ping, or does not even speak HTTP. An agent that is not ready yet answers with an error of
// its own (5xx), or does not listen.
func foreign(met error) bool {
	if said, ok := errors.AsType[*answerError](met); ok {
		return said.code < http.StatusInternalServerError || said.code == http.StatusNotImplemented
	}
	return errors.Is(met, errNoHTTP)
}

package process

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	// pingLimit bounds one probe; the pause between two grows from one bound to the other.
	pingLimit                  = 5 * time.Second
	pingPauseMin, pingPauseMax = 5 * time.Millisecond, 250 * time.Millisecond
)

// newProbeClient returns a client that goes straight to the agent and leaves no connection open.
func newProbeClient() *http.Client {
	return &http.Client{
		Timeout:       pingLimit,
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

var errEnded = errors.New("the process ended")

// awaitPing returns nil as soon as the agent is healthy. Otherwise, when the process or ctx has ended, it returns what a probe met last.
func (t *Target) awaitPing(ctx context.Context, a *agent) error {
	last := errors.New("it was not asked")
	for pause := pingPauseMin; ; pause = min(pause*3/2, pingPauseMax) {
		answer := t.ping(ctx, a.url)
		select {
		case <-a.process.Done():
			return errEnded // if something answered, it was not the agent
		default:
		}
		if answer == nil {
			return nil
		}
		if ctx.Err() != nil {
			return last
		}
		last = answer
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-a.process.Done():
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// ping asks once.
func (t *Target) ping(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/ping", nil)
	if err != nil {
		return err
	}
	response, err := t.probes.Do(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s", response.Status)
	}
	return nil
}

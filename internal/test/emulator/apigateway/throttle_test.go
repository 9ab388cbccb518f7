package apigateway_test

import (
	"net/http"
	"testing"
	"time"
)

// status sends a request without a key and returns the status of the answer.
func (a *api) status(t *testing.T, method, path string) int {
	t.Helper()
	response, _ := a.do(t, method, path, "")
	return response.StatusCode
}

// TestMethodsAreThrottled empties the bucket of one method, which leaves other methods alone, and
// waits until it holds a token again.
func TestMethodsAreThrottled(t *testing.T) {
	t.Parallel()
	a := open(t)
	for range 3 {
		if got := a.status(t, "GET", "/few"); got != http.StatusOK {
			t.Errorf("within the burst: got %d", got)
		}
	}
	response, text := a.do(t, "GET", "/few", "")
	header := response.Header
	if response.StatusCode != http.StatusTooManyRequests || text != `{"detail": "slow"}` || header.Get("X-Amzn-ErrorType") != "THROTTLED" ||
		header.Get("Access-Control-Allow-Origin") != "*" || header.Get("Retry-After") != "2" {
		t.Errorf("beyond the burst: got %d %s %v", response.StatusCode, text, header)
	}
	for _, path := range []string{"/few", "/things"} {
		if got := a.status(t, "POST", path); got != http.StatusOK {
			t.Errorf("POST %s shares the bucket: got %d", path, got)
		}
	}
	a.clock.Pass(100 * time.Second) // the bucket gets one token in this time
	for _, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		if got := a.status(t, "GET", "/few"); got != want {
			t.Errorf("later: got %d, want %d", got, want)
		}
	}
}

// TestThrottledRequestsAskNoAuthorizer sends two requests without a key, of which the second one is
// refused before anybody misses the key. The variables of a path share the bucket of its method.
func TestThrottledRequestsAskNoAuthorizer(t *testing.T) {
	t.Parallel()
	a := open(t)
	for path, want := range map[string]int{"/guarded/1": http.StatusUnauthorized, "/guarded/2": http.StatusUnauthorized} {
		if got := a.status(t, "GET", path); got != want {
			t.Errorf("%s: got %d, want %d", path, got, want)
		}
	}
	if first, second := a.status(t, "GET", "/few/1"), a.status(t, "GET", "/few/2"); first != http.StatusUnauthorized || second != http.StatusTooManyRequests {
		t.Errorf("got %d and %d, want 401 and 429", first, second)
	}
}

package lambda_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/lambda"
)

// limited makes an account with the concurrency 3, of which F has a share, as G has. Own reserves
// one call.
func limited(c *lambda.Config) {
	c.Concurrency = 3
	second, own := c.Functions[0], c.Functions[0]
	second.Name = "G"
	own.Name, own.Reserved = "Own", 1
	c.Functions = append(c.Functions, second, own)
}

// hold calls a function, which then waits at a gate, and returns what lets the call end.
func hold(t *testing.T, p *lambda.Platform, function string) (end func()) {
	t.Helper()
	path, open := gate(t)
	stream, err := p.InvokeStream(t.Context(), function, payload(t, order{Do: "stream", Gate: path, Count: 1}))
	check.Must(t, err)
	return func() {
		open()
		_, err := io.ReadAll(stream)
		check.Must(t, errors.Join(err, stream.Close()))
	}
}

func echo(t *testing.T, p *lambda.Platform, function string) error {
	t.Helper()
	_, err := p.Invoke(t.Context(), function, payload(t, order{Do: "echo"}))
	return err
}

// TestAccountThrottles uses up the concurrency that two functions share. The function that
// reserves its own neither takes of it nor has more.
func TestAccountThrottles(t *testing.T) {
	t.Parallel()
	p := platform(t, limited)
	endFirst, endOwn := hold(t, p, "F"), hold(t, p, "Own")
	check.Must(t, echo(t, p, "F"))
	endSecond := hold(t, p, "G")
	for _, name := range []string{"F", "G", "Own"} {
		if err := echo(t, p, name); !errors.Is(err, lambda.ErrThrottled) {
			t.Errorf("%s: got %v, want a throttled call", name, err)
		}
	}
	endOwn()
	eventually(t, "the end of its call is seen", func() bool { return echo(t, p, "Own") == nil })
	if err := echo(t, p, "G"); !errors.Is(err, lambda.ErrThrottled) {
		t.Errorf("a reserved call has made room for others: got %v", err)
	}
	endFirst()
	eventually(t, "the end of the call is seen", func() bool { return echo(t, p, "G") == nil })
	endSecond()
}

// TestAccountForgetsCalls lets calls of all kinds end. No call keeps its share of the concurrency.
func TestAccountForgetsCalls(t *testing.T) {
	t.Parallel()
	p := platform(t, limited)
	for _, do := range []string{"echo", "fail", "panic", "exit", "nothing"} {
		for range 3 {
			_, err := p.Invoke(t.Context(), "F", payload(t, order{Do: do}))
			if errors.Is(err, lambda.ErrThrottled) {
				t.Errorf("%s: a call is throttled although the ones before it have ended", do)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Invoke(ctx, "G", payload(t, order{Do: "echo"})); err == nil {
		t.Error("a call succeeds whose caller does not wait")
	}
	eventually(t, "there is room for all", func() bool {
		return echo(t, p, "F") == nil && echo(t, p, "G") == nil
	})
	endFirst, endSecond := hold(t, p, "F"), hold(t, p, "G")
	endFirst()
	endSecond()
}

// TestAccountThatIsReservedIsRefused, because functions without a concurrency of their own would
// never run.
func TestAccountThatIsReservedIsRefused(t *testing.T) {
	t.Parallel()
	_, err := lambda.New(lambda.Config{
		Concurrency: 7, Functions: []lambda.Function{{Name: "F", Reserved: 5}, {Name: "G", Reserved: 2}}, Processes: filepath.Join(t.TempDir(), "processes"),
	})
	if err == nil || !strings.Contains(err.Error(), "reserve 7 of the concurrency of 7") {
		t.Errorf("got %v", err)
	}
}

// TestManyCallsWaitForNoProcess, because Lambda knows no limit but the concurrency.
func TestManyCallsWaitForNoProcess(t *testing.T) {
	t.Parallel()
	const many = 70
	p := platform(t, func(c *lambda.Config) { c.Concurrency = many })
	pass, ended := waiting(t, p, many)
	if err := echo(t, p, "F"); !errors.Is(err, lambda.ErrThrottled) {
		t.Errorf("got %v, want a throttled call", err)
	}
	for _, let := range pass {
		let()
	}
	if pids, failures := ended(); len(pids) != many || len(failures) > 0 {
		t.Errorf("got the processes %v and the failures %v", pids, failures)
	}
}

// TestThrottledCallsOfTheAPI calls a function that has no room: a caller who waits is refused with
// the reason, and an asynchronous call is carried out as soon as there is room.
func TestThrottledCallsOfTheAPI(t *testing.T) {
	t.Parallel()
	p := platform(t, func(c *lambda.Config) {
		limited(c)
		c.Concurrency = 2 // one for F and G together
	})
	server := httptest.NewServer(p)
	defer server.Close()
	endFirst, endOwn := hold(t, p, "F"), hold(t, p, "Own")
	for name, why := range map[string]string{
		"F": "ConcurrentInvocationLimitExceeded", "G": "ConcurrentInvocationLimitExceeded", "Own": "ReservedFunctionConcurrentInvocationLimitExceeded",
	} {
		status, kind, body := post(t, server, name, "RequestResponse", order{Do: "echo"})
		var got struct{ Reason, Type, Message string }
		check.Must(t, json.Unmarshal(body, &got))
		if status != http.StatusTooManyRequests || kind != "TooManyRequestsException" || got.Reason != why || got.Message != "Rate Exceeded." {
			t.Errorf("%s: got %d %s %s", name, status, kind, body)
		}
	}
	address, arrival := waitingRoom(t)
	if status, _, body := post(t, server, "G", "Event", order{Do: "wait", Gate: address}); status != http.StatusAccepted {
		t.Errorf("the asynchronous call: got %d %s", status, body)
	}
	if got := p.Workers("G"); len(got) > 0 {
		t.Errorf("the asynchronous call was not throttled: %v", got)
	}
	endFirst()
	endOwn()
	if pass := arrival(); pass != nil {
		pass()
	}
}

// post calls a function by the service's own interface.
func post(t *testing.T, server *httptest.Server, function, kind string, o order) (status int, errorType string, body []byte) {
	t.Helper()
	url := server.URL + "/2015-03-31/functions/" + function + "/invocations"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(string(payload(t, o))))
	check.Must(t, err)
	request.Header.Set("X-Amz-Invocation-Type", kind)
	answer, err := server.Client().Do(request)
	check.Must(t, err)
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	check.Must(t, err)
	return answer.StatusCode, answer.Header.Get("X-Amzn-ErrorType"), body
}

package lambdahost_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
)

// seen is a request as a handler sees it.
type seen struct {
	Method, Path, Escaped, Query, Host, Body string
	Length                                   int64
	Header                                   http.Header
}

func echo(got *seen) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			body = []byte(err.Error())
		}
		*got = seen{r.Method, r.URL.Path, r.URL.EscapedPath(), r.URL.RawQuery, r.Host, string(body), r.ContentLength, r.Header}
		w.WriteHeader(http.StatusNoContent)
	})
}

// TestRequests reads events in the forms that gateways send.
func TestRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event string
		want  func(*seen)
	}{
		"plain":                        {``, func(*seen) {}},
		"method in small letters":      {`{"httpMethod": "post"}`, func(s *seen) { s.Method = "POST" }},
		"escaped slash":                {`{"path": "/a%2Fb"}`, func(s *seen) { s.Path, s.Escaped = "/a/b", "/a%2Fb" }},
		"decoded space":                {`{"path": "/a b"}`, func(s *seen) { s.Path, s.Escaped = "/a b", "/a%20b" }},
		"decoded question mark":        {`{"path": "/a?b"}`, func(s *seen) { s.Path, s.Escaped = "/a?b", "/a%3Fb" }},
		"decoded hash":                 {`{"path": "/a#b"}`, func(s *seen) { s.Path, s.Escaped = "/a#b", "/a%23b" }},
		"percent sign alone":           {`{"path": "/100%"}`, func(s *seen) { s.Path, s.Escaped = "/100%", "/100%25" }},
		"no slash":                     {`{"path": "a"}`, func(s *seen) { s.Path, s.Escaped = "/a", "/a" }},
		"empty path":                   {`{"path": ""}`, func(s *seen) { s.Path, s.Escaped = "/", "/" }},
		"other scripts":                {`{"path": "/ä"}`, func(s *seen) { s.Path, s.Escaped = "/ä", "/%C3%A4" }},
		"single query parameters":      {`{"queryStringParameters": {"q": "a+b c"}}`, func(s *seen) { s.Query = "q=a%2Bb+c" }},
		"repeated query parameters":    {`{"multiValueQueryStringParameters": {"q": ["1", "2"]}}`, func(s *seen) { s.Query = "q=1&q=2" }},
		"text":                         {`{"body": "{}"}`, func(s *seen) { s.Body, s.Length = "{}", 2 }},
		"base64":                       {`{"body": "/wA=", "isBase64Encoded": true}`, func(s *seen) { s.Body, s.Length = "\xff\x00", 2 }},
		"headers that came once":       {`{"multiValueHeaders": null, "headers": {"a": "1"}}`, func(s *seen) { s.Header = http.Header{"A": {"1"}} }},
		"headers that came repeatedly": {`{"multiValueHeaders": {"a": ["1", "2"]}}`, func(s *seen) { s.Header = http.Header{"A": {"1", "2"}} }},
		"a host without a domain": {
			`{"requestContext": {"domainName": ""}}`, func(*seen) {},
		},
		"the client's request id": {
			`{"multiValueHeaders": {"x-request-id": ["mine"]}}`, func(s *seen) { s.Header = http.Header{"X-Request-Id": {"mine"}} },
		},
	} {
		want := seen{
			Method: "GET", Path: "/echo", Escaped: "/echo", Host: "api.test",
			Header: http.Header{"X-Forwarded-Proto": {"https"}},
		}
		c.want(&want)
		if want.Header.Get("X-Request-Id") == "" {
			want.Header.Set("X-Request-Id", invocationID)
		}
		var got seen
		if answer, _ := call(t, echo(&got), c.event); answer.StatusCode != http.StatusNoContent {
			t.Errorf("%s: answered with %s", name, show(answer))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestResponses answers as net/http does.
func TestResponses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event   string
		handler http.HandlerFunc
		want    string
	}{
		"nothing at all": {``, func(http.ResponseWriter, *http.Request) {}, "200  "},
		"a body alone":   {``, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("text")) }, "200 text/plain; charset=utf-8 text"},
		"the first status counts": {``, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusCreated)
			w.WriteHeader(http.StatusTeapot)
		}, "201  "},
		"headers after the first write do not": {``, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "a/b")
			w.Write([]byte("1"))
			w.Header().Set("Content-Type", "c/d")
			w.Write([]byte("2"))
		}, "200 a/b 12"},
		"a flush commits": {``, func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Errorf("Flush: %v", err)
			}
			w.WriteHeader(http.StatusTeapot)
		}, "200  "},
		"bytes": {``, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte{0xff, 0}) }, "200 application/octet-stream /wA="},
		"HEAD":  {`{"httpMethod": "HEAD"}`, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("text")) }, "200 text/plain; charset=utf-8 "},
		"no body with a 204": {``, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
			w.Write([]byte("text"))
		}, "204  "},
		"a body that is no body": {`{"body": "%", "isBase64Encoded": true}`, nil, `400 application/json {"detail":"The request could not be read."}`},
		"a panic":                {``, func(http.ResponseWriter, *http.Request) { panic("boom") }, internalError},
		"a panic when all seemed well": {``, func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte("half"))
			panic(http.ErrAbortHandler)
		}, internalError},
	} {
		answer, _ := call(t, c.handler, c.event)
		if got := show(answer); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if want := name == "bytes"; answer.IsBase64Encoded != want {
			t.Errorf("%s: base64 is %v", name, answer.IsBase64Encoded)
		}
	}
}

const internalError = `500 application/json {"detail":"Internal server error (request ` + invocationID + `)."}`

func TestHeadersThatRepeat(t *testing.T) {
	t.Parallel()
	answer, _ := call(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Set-Cookie"] = []string{"a", "b"}
	}), "")
	if got := answer.MultiValueHeaders["Set-Cookie"]; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %v", got)
	}
}

// TestAResponseThatIsTooLargeIsRefused sends bodies at the limit: Lambda counts the bytes of
// their JSON form.
func TestAResponseThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"fits":           {strings.Repeat("a", 6<<20-500), 200},
		"does not fit":   {strings.Repeat("a", 6<<20), 413},
		"grows":          {strings.Repeat("<", 1<<20+20<<10), 413},
		"grows less":     {strings.Repeat(`"`, 2<<20), 200},
		"bytes that fit": {strings.Repeat("\xff", 4<<20), 200},
		"bytes":          {strings.Repeat("\xff", 5<<20), 413},
	} {
		answer, logged := call(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(c.body)) }), "")
		if answer.StatusCode != c.want {
			t.Errorf("%s: got %d, want %d", name, answer.StatusCode, c.want)
		}
		encoded, err := json.Marshal(answer)
		if err != nil || len(encoded) > 6<<20 {
			t.Errorf("%s: %d bytes of JSON (%v)", name, len(encoded), err)
		}
		if c.want == 413 {
			wantLine(t, logged, "too large", invocationID)
			if !strings.HasPrefix(answer.Body, `{"detail":"The answer is larger than 6 MB`) || answer.MultiValueHeaders["X-Request-Id"] == nil {
				t.Errorf("%s: got %s with %v", name, answer.Body, answer.MultiValueHeaders)
			}
		}
	}
}

// TestAPanicIsLogged checks that a panic is in the log, with the id that the client got.
func TestAPanicIsLogged(t *testing.T) {
	t.Parallel()
	answer, logged := call(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") }), `{"body": "secret-body"}`)
	wantLine(t, logged, `"level":"ERROR"`, `"message":"handler panicked"`, `"panic":"boom"`, `"requestId":"`+invocationID+`"`, "buffered_test.go")
	if answer.MultiValueHeaders["X-Request-Id"][0] != invocationID {
		t.Errorf("got headers %v", answer.MultiValueHeaders)
	}
	if strings.Contains(logged.String(), "secret-body") {
		t.Error("the log has the body")
	}
}

// TestARequestIsCutShortBeforeItsFunctionIs lets handlers wait until they are told to stop.
// Package web answers, as it does when a server stops.
func TestARequestIsCutShortBeforeItsFunctionIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		timeout, want time.Duration
	}{
		"an API function":      {29 * time.Second, 28 * time.Second},
		"a very short timeout": {time.Second, 750 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			log, logged := newLog()
			mux := web.NewMux(log)
			mux.Handle("GET /echo", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				<-r.Context().Done()
				mux.Error(w, r, r.Context().Err())
			}))
			began := time.Now()
			answer, err := lambdahost.Buffered(mux, log)(invocation(t, c.timeout), event(t, ""))
			if err != nil || answer.StatusCode != http.StatusServiceUnavailable || answer.MultiValueHeaders["Retry-After"] == nil {
				t.Errorf("%s: got %v, %v", name, answer, err)
			}
			if took := time.Since(began); took != c.want {
				t.Errorf("%s: it took %v, want %v", name, took, c.want)
			}
			wantLine(t, logged, `"message":"request"`, `"status":503`, `"request_id":"`+invocationID+`"`)
		})
	}
}

// TestACutRequestThatHadBegunIsUnavailable has a handler that gives up a response in the
// middle; the response is still in this process.
func TestACutRequestThatHadBegunIsUnavailable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, _ := newLog()
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte("half"))
			<-r.Context().Done()
			if !fault.Is(context.Cause(r.Context()), fault.Unavailable) {
				t.Errorf("the cause is %v", context.Cause(r.Context()))
			}
			panic(http.ErrAbortHandler)
		})
		answer, err := lambdahost.Buffered(handler, log)(invocation(t, 10*time.Second), event(t, ""))
		if err != nil || answer.StatusCode != http.StatusServiceUnavailable || strings.Contains(answer.Body, "half") {
			t.Errorf("got %v, %v", answer, err)
		}
	})
}

func TestBase64GoesBothWays(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	answer, _ := call(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }),
		`{"body": "`+base64.StdEncoding.EncodeToString(all)+`", "isBase64Encoded": true}`)
	got, err := base64.StdEncoding.DecodeString(answer.Body)
	if err != nil || string(got) != string(all) {
		t.Errorf("got %x (%v)", got, err)
	}
}

// TestAttackAnEndlessAnswer has a handler write until it fails: a function that does not stream
// keeps no more of it than it could send, and says so.
func TestAttackAnEndlessAnswer(t *testing.T) {
	t.Parallel()
	wrote := 0
	answer, _ := call(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for part := make([]byte, 1<<20); wrote < 1<<30; wrote += len(part) {
			if _, err := w.Write(part); err != nil {
				panic(http.ErrAbortHandler) // as a proxy does
			}
		}
	}), ``)
	if answer.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(answer.Body, "larger than 6 MB") || wrote > 8<<20 {
		t.Errorf("after %d bytes: got %s", wrote, show(answer))
	}
}

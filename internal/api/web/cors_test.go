package web_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// newOpen serves GET and POST of /d/{id}/things to callers with a key, and admits pages of some
// origins; /v2/things admits no page.
func newOpen(t *testing.T, origins ...string) *web.Mux {
	t.Helper()
	mux, _ := newMux()
	mux.AllowOrigins("/d/", nil, origins...)
	for _, pattern := range []string{"GET /d/{id}/things", "POST /d/{id}/things", "GET /v2/things"} {
		mux.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Api-Key") == "" {
				mux.Error(w, r, fault.New(fault.Unauthorized, "Send a key."))
			}
		}))
	}
	return mux
}

// crossHeaders are the headers that browsers look at.
func crossHeaders(header http.Header) map[string]string {
	found := map[string]string{}
	for name := range header {
		if name == "Vary" || len(name) > 14 && name[:14] == "Access-Control" {
			found[name] = header.Get(name)
		}
	}
	return found
}

const exposedHeaders = "Content-Location, ETag, Location, Retry-After, Warning, X-Pagination-Next, X-Pagination-Total, X-Request-Id"

func TestPagesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	anyOrigin := map[string]string{"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": exposedHeaders}
	preflight := map[string]string{
		"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Methods": "GET, HEAD, OPTIONS, POST", "Access-Control-Max-Age": "7200",
		"Access-Control-Allow-Headers": "content-type,x-api-key", "Vary": "Access-Control-Request-Headers",
	}
	own := map[string]string{"Access-Control-Allow-Origin": "https://app.test", "Vary": "Origin", "Access-Control-Expose-Headers": exposedHeaders}
	nobody := map[string]string{"Vary": "Origin"}
	for name, c := range map[string]struct {
		origins        []string
		method, target string
		headers        []string
		status         int
		want           map[string]string
	}{
		"a preflight": {
			[]string{"*"}, "OPTIONS", "/d/1/things",
			[]string{"Origin", "https://x.test", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type,x-api-key"},
			204, preflight,
		},
		"a request":              {[]string{"*"}, "GET", "/d/1/things", []string{"Origin", "https://x.test", "X-Api-Key", "k"}, 200, anyOrigin},
		"a refusal":              {[]string{"*"}, "POST", "/d/1/things", []string{"Origin", "https://x.test"}, 401, anyOrigin},
		"an unknown path":        {[]string{"*"}, "GET", "/d/1/nothing", []string{"Origin", "https://x.test"}, 404, anyOrigin},
		"no page":                {[]string{"*"}, "GET", "/d/1/things", []string{"X-Api-Key", "k"}, 200, anyOrigin},
		"OPTIONS of no page":     {[]string{"*"}, "OPTIONS", "/d/1/things", nil, 204, anyOrigin},
		"preflight of nothing":   {[]string{"*"}, "OPTIONS", "/d/1/nothing", []string{"Origin", "https://x.test", "Access-Control-Request-Method", "GET"}, 404, map[string]string{"Access-Control-Allow-Origin": "*"}},
		"another prefix":         {[]string{"*"}, "GET", "/v2/things", []string{"Origin", "https://x.test", "X-Api-Key", "k"}, 200, map[string]string{}},
		"an origin that may":     {[]string{"https://y.test", "https://app.test"}, "GET", "/d/1/things", []string{"Origin", "https://app.test", "X-Api-Key", "k"}, 200, own},
		"an origin that may not": {[]string{"https://app.test"}, "GET", "/d/1/things", []string{"Origin", "https://x.test", "X-Api-Key", "k"}, 200, nobody},
		"its preflight": {
			[]string{"https://app.test"}, "OPTIONS", "/d/1/things", []string{"Origin", "https://x.test", "Access-Control-Request-Method", "POST"}, 204, nobody,
		},
		"no origin where some may": {[]string{"https://app.test"}, "GET", "/d/1/things", []string{"X-Api-Key", "k"}, 200, nobody},
		"no origins":               {nil, "GET", "/d/1/things", []string{"Origin", "https://x.test", "X-Api-Key", "k"}, 200, nobody},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := send(t, newOpen(t, c.origins...), c.method, c.target, "", c.headers...)
			if w.Code != c.status {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, c.status)
			}
			if diff := cmp.Diff(c.want, crossHeaders(w.Header())); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
			if w.Header().Get("X-Request-Id") == "" || w.Header().Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("headers: %v", w.Header())
			}
		})
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	page := web.Serve(func() web.File {
		return web.File{Body: []byte("<!DOCTYPE html><title>Docs</title>"), Type: "text/html; charset=utf-8", ContentPolicy: "default-src 'none'"}
	})
	w := send(t, page, "GET", "/docs", "")
	want := map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "no-referrer", "Cache-Control": "no-cache",
	}
	for name, value := range want {
		if got := w.Header().Get(name); got != value {
			t.Errorf("%s: got %q, want %q", name, got, value)
		}
	}
	if w.Code != 200 || w.Body.String() != "<!DOCTYPE html><title>Docs</title>" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	again := send(t, page, "GET", "/docs", "", "If-None-Match", w.Header().Get("ETag"))
	if again.Code != 304 || again.Body.Len() != 0 || again.Header().Get("ETag") != w.Header().Get("ETag") {
		t.Errorf("again: got %d %v %s", again.Code, again.Header(), again.Body)
	}
}

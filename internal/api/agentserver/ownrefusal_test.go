package agentserver_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestARefusalHasTheHandlersOwnWords checks that a client gets the status, the text and the headers
// of a handler that refuses a request, whether the handler says who the user is or what the user
// may do.
func TestARefusalHasTheHandlersOwnWords(t *testing.T) {
	t.Parallel()
	f, g, _ := setUpGuarded(t)
	for _, tt := range []struct {
		ruling           object
		otherwise, value int // the status if the ruling has none that refuses, for each question
		headers          map[string]string
	}{
		{ruling: object{"status": 401, "detail": "No."}, headers: map[string]string{"Www-Authenticate": "Bearer"}},
		{
			ruling:  object{"status": 401, "headers": object{"www-authenticate": `Bearer realm="x"`, "X-Reason": "old"}},
			headers: map[string]string{"Www-Authenticate": `Bearer realm="x"`, "X-Reason": "old"},
		},
		{ruling: object{"status": 402, "detail": "Pay."}, headers: map[string]string{"Www-Authenticate": ""}},
		{ruling: object{"status": 409}},
		{ruling: object{"status": 422, "detail": "The word is wrong."}},
		{ruling: object{"status": 429, "headers": object{"Retry-After": "7"}}, headers: map[string]string{"Retry-After": "7"}},
		{ruling: object{"status": 500}, headers: map[string]string{"Retry-After": ""}},
		{ruling: object{"status": 503}},
		{ruling: object{"status": 200}, otherwise: 401, value: 403},
		{ruling: object{"status": 302, "headers": object{"Location": "https://elsewhere.test"}}, otherwise: 401, value: 403},
		{ruling: object{"status": 600}, otherwise: 401, value: 403},
		{ruling: object{"status": -1}, otherwise: 401, value: 403},
	} {
		tt.ruling["allowed"] = false
		ruling := string(marshal(tt.ruling))
		authenticated := f.as(t, ruling, "POST", "/threads", object{})
		g.answer(ruling)
		authorized := f.as(t, "ada", "POST", "/threads", object{})
		g.answer("")
		for i, answer := range []response{authenticated, authorized} {
			status, _ := tt.ruling["status"].(int)
			if tt.otherwise != 0 {
				status = []int{tt.otherwise, tt.value}[i]
			}
			if detail, said := tt.ruling["detail"]; said {
				wantDetail(t, answer, status, fmt.Sprint(detail))
			}
			wantStatus(t, answer, status)
			for name, want := range tt.headers {
				if got := answer.Header.Get(name); got != want {
					t.Errorf("%s: %s is %q, want %q", ruling, name, got, want)
				}
			}
		}
	}
}

// TestAttackHeadersOfARefusal has a handler refuse a request with headers that would concern more
// than the answer to this request.
func TestAttackHeadersOfARefusal(t *testing.T) {
	t.Parallel()
	f, g, _ := setUpGuarded(t)
	g.answer(`{"allowed": false}`)
	usual := f.as(t, "ada", "POST", "/threads", object{})
	harmful := object{}
	for _, name := range []string{
		"Access-Control-Allow-Origin", "Cache-Control", "Clear-Site-Data", "Connection", "Content-Encoding", "content-length", "Content-Security-Policy", "Content-Type",
		"Date", "Keep-Alive", "NEL", "Strict-Transport-Security", "Trailer", "Transfer-Encoding", "Upgrade", "Vary", "X-Content-Type-Options", "X-Request-Id", "X-Slipway-Caller",
		"not a name", "",
	} {
		harmful[name] = "7"
	}
	harmful["Set-Cookie"], harmful["X-Two-Lines"] = "a=b; Domain=slipway.test; Path=/", "a\r\nX-Smuggled: b"
	g.answer(string(marshal(object{"allowed": false, "headers": harmful})))
	got := f.as(t, "ada", "POST", "/threads", object{})
	wantStatus(t, got, http.StatusForbidden)
	for _, answer := range []response{usual, got} {
		answer.Header.Del("Date")
		answer.Header.Del("X-Request-Id")
	}
	cookie := got.Header.Get("Set-Cookie")
	got.Header.Del("Set-Cookie")
	if !strings.HasPrefix(cookie, "a=b; Path=/d/") || strings.Contains(cookie, "Domain") {
		t.Errorf("the cookie is %q", cookie)
	}
	if !maps.EqualFunc(usual.Header, got.Header, slices.Equal) {
		t.Errorf("the headers are %v\nand would be %v", got.Header, usual.Header)
	}
	many := object{}
	for i := range 40 {
		many[fmt.Sprintf("X-N%02d", i)] = "v"
	}
	for headers, want := range map[string]int{string(marshal(many)): 16, `{"X-N1": "` + strings.Repeat("x", 3000) + `", "X-N2": "` + strings.Repeat("x", 3000) + `"}`: 1} {
		g.answer(`{"allowed": false, "headers": ` + headers + `}`)
		n := 0
		for name := range f.as(t, "ada", "POST", "/threads", object{}).Header {
			if strings.HasPrefix(name, "X-N") {
				n++
			}
		}
		if n != want {
			t.Errorf("a client gets %d headers, want %d", n, want)
		}
	}
}

package lambdahost_test

import (
	"net/http"
	"testing"
)

// TestAHandlerKnowsTheClientsConnection checks the members of a request that a proxy makes its
// X-Forwarded-For and X-Forwarded-Proto of, and a query whose names have no order in the event.
func TestAHandlerKnowsTheClientsConnection(t *testing.T) {
	t.Parallel()
	for event, want := range map[string]string{
		`{"requestContext": {"identity": {"sourceIp": "203.0.113.7"}}}`:                                                                          "203.0.113.7:0 true ",
		`{"requestContext": {"identity": {"sourceIp": "2001:db8::1"}}, "multiValueHeaders": {"X-Forwarded-Proto": ["http"]}}`:                    "[2001:db8::1]:0 false ",
		`{"requestContext": {"identity": {"sourceIp": "::1"}}, "multiValueQueryStringParameters": {"b": ["2", "1"], "a": ["/"], "c": ["", ""]}}`: "[::1]:0 true a=%2F&b=2&b=1&c=&c=",
	} {
		for range 5 {
			got := ""
			answer, _ := call(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r.RemoteAddr + " " + map[bool]string{true: "true", false: "false"}[r.TLS != nil] + " " + r.URL.RawQuery
				w.WriteHeader(http.StatusNoContent)
			}), event)
			if got != want || answer.StatusCode != http.StatusNoContent {
				t.Errorf("%s: the handler sees %q, want %q", event, got, want)
			}
		}
	}
}

package docs_test

import (
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/api/docs"
	"github.com/slipway-run/slipway/internal/api/web"
)

// get reads the page at a path.
func get(t *testing.T, path string) *httptest.ResponseRecorder {
	t.Helper()
	mux := web.NewMux(slog.New(slog.DiscardHandler))
	docs.Register(mux)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

func TestThePageStandsBesideEachDocument(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/docs", "/api-host/docs"} {
		w := get(t, path)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(w.Body.String(), `url: "openapi.json"`) {
			t.Errorf("%s: got %d %v", path, w.Code, w.Header())
		}
	}
}

// TestThePolicyAllowsThePageAndNothingElse compares the digests of the policy with the texts
// whose digests a browser would check, and searches the markup for anything that a browser
// would load.
func TestThePolicyAllowsThePageAndNothingElse(t *testing.T) {
	t.Parallel()
	w := get(t, "/docs")
	page, policy := w.Body.String(), w.Header().Get("Content-Security-Policy")
	allowed := map[string][]string{}
	for directive := range strings.SplitSeq(policy, "; ") {
		words := strings.Fields(directive)
		allowed[words[0]] = words[1:]
	}
	markup := page
	for tag, directive := range map[string]string{"style": "style-src", "script": "script-src"} {
		elements := regexp.MustCompile(`(?s)<`+tag+`>(.*?)</`+tag+`>`).FindAllStringSubmatch(page, -1)
		if len(elements) == 0 || len(elements) != len(allowed[directive]) {
			t.Errorf("the page has %d elements %s and the policy allows %d", len(elements), tag, len(allowed[directive]))
		}
		for i, element := range elements {
			sum := sha256.Sum256([]byte(element[1]))
			if want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; allowed[directive][i] != want {
				t.Errorf("%s %d: the policy has %s, want %s", tag, i, allowed[directive][i], want)
			}
			markup = strings.Replace(markup, element[0], "", 1)
		}
	}
	for directive, want := range map[string]string{
		"default-src": "'none'", "connect-src": "'self'", "img-src": "data:", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'",
	} {
		if got := strings.Join(allowed[directive], " "); got != want {
			t.Errorf("%s: got %q, want %q", directive, got, want)
		}
	}
	loads := regexp.MustCompile(`(?i)<(img|iframe|object|embed|base|form)\b|\bsrc=|\bhref="[^d]|@import|\bon[a-z]+="|<[a-z]+ [^>]*style=`)
	for _, element := range loads.FindAllString(markup, -1) {
		t.Errorf("the markup has %s", element)
	}
}

package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestRouting(t *testing.T) {
	t.Parallel()
	things := newThings(t)
	for _, tt := range []struct {
		method, target string
		status         int
		allow, body    string
	}{
		{"GET", "/nowhere", 404, "", `{"detail":"Not Found"}`},
		{"GET", "/", 404, "", `{"detail":"Not Found"}`},
		{"GET", "/things/", 404, "", `{"detail":"Not Found"}`},
		{"PATCH", thingPath + "/", 404, "", `{"detail":"Not Found"}`},
		{"GET", "/Things?must=1", 404, "", `{"detail":"Not Found"}`},
		{"POST", "//things", 404, "", `{"detail":"Not Found"}`},
		{"GET", "/x/../things?must=1", 404, "", `{"detail":"Not Found"}`},
		{"GET", "/./things?must=1", 404, "", `{"detail":"Not Found"}`},
		{"GET", "/%2e%2e/things?must=1", 404, "", `{"detail":"Not Found"}`},
		{"DELETE", "/things", 405, "GET, HEAD, OPTIONS", `{"detail":"Method Not Allowed"}`},
		{"BREW", "/things", 405, "GET, HEAD, OPTIONS", `{"detail":"Method Not Allowed"}`},
		{"GET", thingPath, 405, "OPTIONS, PATCH, POST", `{"detail":"Method Not Allowed"}`},
		{"OPTIONS", thingPath, 204, "OPTIONS, PATCH, POST", ""},
		{"OPTIONS", "/nowhere", 404, "", `{"detail":"Not Found"}`},
		{"GET", "/%74hings?must=1", 200, "", `{"must":["1"]}` + "\n"},
		{"PATCH", "/things/a%2Fb", 422, "", `{"detail":[{"loc":["path","thing_id"],"msg":"Input should be a valid UUID","type":"uuid_parsing"}]}`},
	} {
		t.Run(tt.method+" "+tt.target, func(t *testing.T) {
			t.Parallel()
			w := send(t, things, tt.method, tt.target, "")
			if w.Code != tt.status || w.Body.String() != tt.body || w.Header().Get("Allow") != tt.allow {
				t.Errorf("got %d %q Allow %q, want %d %q Allow %q", w.Code, w.Body, w.Header().Get("Allow"), tt.status, tt.body, tt.allow)
			}
			if tt.status >= 400 && w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("Content-Type: got %q, want application/json", w.Header().Get("Content-Type"))
			}
		})
	}
}

func TestHeadIsAnsweredByGet(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newThings(t))
	t.Cleanup(server.Close)
	response, err := http.Head(server.URL + "/things?must=1")
	check.Must(t, err)
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK || response.ContentLength != int64(len(`{"must":["1"]}`)+1) {
		t.Errorf("got %d with length %d, want 200 with that of GET", response.StatusCode, response.ContentLength)
	}
}

func TestRoutesUnderABase(t *testing.T) {
	t.Parallel()
	mux, _ := newMux()
	mux.Routes(load(t, thingsDocument), "/d/{deployment_id}", nil).HandleFunc("GET /d/{deployment_id}/open",
		func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.PathValue("deployment_id")) })
	if w := send(t, mux, http.MethodGet, "/d/7/open", ""); w.Body.String() != "7" {
		t.Errorf("got %d %s, want 7", w.Code, w.Body)
	}
	if w := send(t, mux, http.MethodGet, "/open", ""); w.Code != http.StatusNotFound {
		t.Errorf("without the base: got %d, want 404", w.Code)
	}
}

func TestRouteThatIsNotInTheContract(t *testing.T) {
	t.Parallel()
	mux, _ := newMux()
	defer func() {
		if cause := fmt.Sprint(recover()); !strings.Contains(cause, "GET /thing is not in the contract") {
			t.Errorf("panic: got %s", cause)
		}
	}()
	mux.Routes(load(t, thingsDocument), "", nil).HandleFunc("GET /thing", nil)
}

func TestAuthenticationComesFirst(t *testing.T) {
	t.Parallel()
	mux, _ := newMux()
	refuse := func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mux.Error(w, r, fault.New(fault.Unauthorized, "Send a key."))
		})
	}
	routes := mux.Routes(load(t, thingsDocument), "", always(refuse))
	for _, pattern := range []string{"GET /open", "GET /closed", "POST /things/{thing_id}"} {
		routes.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	}
	for target, want := range map[string]int{"GET /open": 204, "GET /closed": 401, "POST /things/not-an-id": 401} {
		method, path, _ := strings.Cut(target, " ")
		if w := send(t, mux, method, path, ""); w.Code != want {
			t.Errorf("%s: got %d, want %d", target, w.Code, want)
		}
	}
}

// TestAttackAnswersOfOthersInACache has a cache before the server, which may keep every answer that
// does not forbid it: an answer to one key must not become the answer to another.
func TestAttackAnswersOfOthersInACache(t *testing.T) {
	t.Parallel()
	mux, _ := newMux()
	routes := mux.Routes(load(t, thingsDocument), "", nil)
	for _, pattern := range []string{"GET /open", "GET /closed"} {
		routes.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	}
	for path, want := range map[string]string{"/open": "", "/closed": "private, no-cache"} {
		if w := send(t, mux, "GET", path, ""); w.Code != http.StatusOK || w.Header().Get("Cache-Control") != want {
			t.Errorf("%s: got %d, %v, want %q", path, w.Code, w.Header(), want)
		}
	}
}

func TestDocumentIsPublished(t *testing.T) {
	t.Parallel()
	mux, _ := newMux()
	mux.Handle("GET /openapi.json", load(t, thingsDocument))
	w := send(t, mux, http.MethodGet, "/openapi.json", "")
	var document struct {
		Info       struct{ Version string }
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil {
		t.Fatalf("body: %v", err)
	}
	if document.Info.Version != "0.1.0" || document.Components.Schemas["Color"] == nil {
		t.Errorf("document: got %+v", document)
	}
	if strings.Contains(w.Body.String(), `"x-`) {
		t.Error("the document shows what is for the generator")
	}
}

// failing serves GET /fail with a handler that the test chooses.
func failing(handler func(*web.Mux, http.ResponseWriter, *http.Request)) (*web.Mux, *check.Log) {
	mux, l := newMux()
	mux.Handle("GET /fail", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler(mux, w, r) }))
	return mux, l
}

func TestErrorAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		err    error
		status int
		body   string
		header [2]string
	}{
		{"invalid", fault.New(fault.Invalid, "no"), 400, `{"detail":"no"}`, [2]string{}},
		{"unauthorized", fault.New(fault.Unauthorized, "no"), 401, `{"detail":"no"}`, [2]string{"WWW-Authenticate", "Bearer"}},
		{"forbidden", fault.New(fault.Forbidden, "no"), 403, `{"detail":"no"}`, [2]string{}},
		{"not found", fault.New(fault.NotFound, "no"), 404, `{"detail":"no"}`, [2]string{}},
		{"conflict", fault.New(fault.Conflict, "no"), 409, `{"detail":"no"}`, [2]string{}},
		{"too large", fault.New(fault.TooLarge, "no"), 413, `{"detail":"no"}`, [2]string{}},
		{"media type", fault.New(fault.UnsupportedMediaType, "no"), 415, `{"detail":"no"}`, [2]string{}},
		{"unavailable", fault.New(fault.Unavailable, "no"), 503, `{"detail":"no"}`, [2]string{"Retry-After", "2"}},
		{"shape", fault.Shape(fault.Detail{Loc: []any{"body", 0}, Msg: "m", Type: "t"}), 422, `{"detail":[{"loc":["body",0],"msg":"m","type":"t"}]}`, [2]string{}},
		{"shape without details", fault.New(fault.Unprocessable, "no"), 422, `{"detail":[{"loc":["body"],"msg":"no","type":"value_error"}]}`, [2]string{}},
		{"wrapped", fmt.Errorf("create deployment: %w", fault.New(fault.Conflict, "taken")), 409, `{"detail":"taken"}`, [2]string{}},
		{"worded", fmt.Errorf("decide: %w", &web.RepositoryFault{Fault: fault.New(fault.Forbidden, "pay"), Status: 402, Header: http.Header{"X-Price": {"7"}}}), 402, `{"detail":"pay"}`, [2]string{"X-Price", "7"}},
		{"unknown", errors.New("disk full"), 500, `{"detail":"Internal server error (request r-1)."}`, [2]string{}},
		{"unknown kind", fault.New("odd", "secret"), 500, `{"detail":"Internal server error (request r-1)."}`, [2]string{}},
		{"cancelled, but not by the client", context.Canceled, 500, `{"detail":"Internal server error (request r-1)."}`, [2]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			mux, l := failing(func(m *web.Mux, w http.ResponseWriter, r *http.Request) { m.Error(w, r, tt.err) })
			w := send(t, mux, http.MethodGet, "/fail", "", "X-Request-Id", "r-1")
			if w.Code != tt.status || w.Body.String() != tt.body {
				t.Errorf("got %d %s, want %d %s", w.Code, w.Body, tt.status, tt.body)
			}
			if got := w.Header().Get(tt.header[0]); tt.header[0] != "" && got != tt.header[1] {
				t.Errorf("%s: got %q, want %q", tt.header[0], got, tt.header[1])
			}
			wantLogged := 0
			if tt.status == 500 {
				wantLogged = 1
			}
			if got := strings.Count(l.String(), "level=ERROR"); got != wantLogged {
				t.Errorf("errors logged: got %d, want %d:\n%s", got, wantLogged, l)
			}
		})
	}
}

func TestUnknownErrorIsLoggedWithItsRequest(t *testing.T) {
	t.Parallel()
	mux, l := failing(func(m *web.Mux, w http.ResponseWriter, r *http.Request) { m.Error(w, r, errors.New("disk full")) })
	send(t, mux, http.MethodGet, "/fail", "", "X-Request-Id", "r-1")
	if !strings.Contains(l.String(), `level=ERROR msg="request failed" method=GET request_id=r-1 error="disk full"`) {
		t.Errorf("log:\n%s", l)
	}
}

func TestClientThatHasGone(t *testing.T) {
	t.Parallel()
	mux, l := failing(func(m *web.Mux, w http.ResponseWriter, r *http.Request) {
		m.Error(w, r, fmt.Errorf("read state: %w", r.Context().Err()))
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/fail", nil))
	if strings.Contains(l.String(), "ERROR") || !strings.Contains(l.String(), "status=499") {
		t.Errorf("log:\n%s", l)
	}
}

func TestServerThatStopsSaysWhy(t *testing.T) {
	t.Parallel()
	mux, _ := failing(func(m *web.Mux, w http.ResponseWriter, r *http.Request) { m.Error(w, r, r.Context().Err()) })
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fault.New(fault.Unavailable, "The server is stopping."))
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/fail", nil))
	if got, want := w.Body.String(), `{"detail":"The server is stopping."}`; w.Code != 503 || got != want {
		t.Errorf("got %d %s, want 503 %s", w.Code, got, want)
	}
}

func TestPanicIsAnswered(t *testing.T) {
	t.Parallel()
	mux, l := failing(func(*web.Mux, http.ResponseWriter, *http.Request) { panic("boom") })
	w := send(t, mux, http.MethodGet, "/fail", "", "X-Request-Id", "r-1")
	if got, want := w.Body.String(), `{"detail":"Internal server error (request r-1)."}`; w.Code != 500 || got != want {
		t.Errorf("got %d %s, want 500 %s", w.Code, got, want)
	}
	for _, want := range []string{"panic=boom", "mux_test.go", "status=500"} {
		if !strings.Contains(l.String(), want) {
			t.Errorf("log lacks %q:\n%s", want, l)
		}
	}
}

// TestResponseCutShort checks that a response that has begun does not become an error: the
// client must see that it is not complete.
func TestResponseCutShort(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*web.Mux, http.ResponseWriter, *http.Request){
		"by an error": func(m *web.Mux, w http.ResponseWriter, r *http.Request) { m.Error(w, r, errors.New("disk full")) },
		"by a panic":  func(*web.Mux, http.ResponseWriter, *http.Request) { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mux, l := failing(func(m *web.Mux, w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusOK)
				fmt.Fprint(w, "part")
				fail(m, w, r)
			})
			w := httptest.NewRecorder()
			defer func() {
				if recover() != http.ErrAbortHandler {
					t.Error("the connection was not closed")
				}
				if w.Body.String() != "part" || !strings.Contains(l.String(), "level=ERROR") {
					t.Errorf("got %q, log:\n%s", w.Body, l)
				}
			}()
			mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/fail", nil))
		})
	}
}

// TestResponseCutShortOnPurpose checks that a response that the server cuts short because it
// stops, or because a function's time is up, is not an error.
func TestResponseCutShortOnPurpose(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cause error
		level string
	}{
		"the server stops":     {fault.New(fault.Unavailable, "The server is stopping."), "level=INFO"},
		"as wrapped":           {fmt.Errorf("stop: %w", fault.New(fault.Unavailable, "The server is stopping.")), "level=INFO"},
		"another fault":        {fault.New(fault.Conflict, "The run is over."), "level=ERROR"},
		"an error of ours":     {errors.New("disk full"), "level=ERROR"},
		"no end of the server": {nil, "level=ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			mux, l := failing(func(m *web.Mux, w http.ResponseWriter, r *http.Request) {
				stream := web.NewStream(w)
				err := error(fault.New(fault.Unavailable, "The table is busy."))
				if tt.cause != nil {
					cancel(tt.cause)
					err = stream.Follow(r.Context(), time.Hour, silent)
				}
				m.Error(w, r, err)
			})
			defer func() {
				if recover() != http.ErrAbortHandler {
					t.Error("the connection was not closed")
				}
				line, _, _ := strings.Cut(l.String(), "\n")
				if !strings.Contains(line, tt.level+` msg="response cut short" route="GET /fail" request_id=r-1 error=`) {
					t.Errorf("want %s, log:\n%s", tt.level, l)
				}
			}()
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/fail", nil)
			r.Header.Set("X-Request-Id", "r-1")
			mux.ServeHTTP(httptest.NewRecorder(), r)
		})
	}
}

// TestClientThatLeavesInTheMiddle has a client leave in the middle of the response: then there
// is no client to answer and no error to correct.
func TestClientThatLeavesInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(w http.ResponseWriter, cancel func()) error{
		"and the connection says so": func(w http.ResponseWriter, _ func()) error {
			return web.NewStream(w).Send(web.Event{Data: []byte("1")})
		},
		"and the context says so": func(w http.ResponseWriter, cancel func()) error {
			w.WriteHeader(http.StatusOK)
			cancel()
			return errors.New("broken pipe")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			mux, l := failing(func(m *web.Mux, w http.ResponseWriter, r *http.Request) { m.Error(w, r, fail(w, cancel)) })
			defer func() {
				if recover() != http.ErrAbortHandler || strings.Contains(l.String(), "ERROR") {
					t.Errorf("want the connection closed and no error logged; log:\n%s", l)
				}
			}()
			mux.ServeHTTP(broken{httptest.NewRecorder()}, httptest.NewRequestWithContext(ctx, http.MethodGet, "/fail", nil))
		})
	}
}

func TestRequestThatDoesNotBind(t *testing.T) {
	t.Parallel()
	var target struct{ A struct{ B int8 } }
	mismatch := json.Unmarshal([]byte(`{"A":{"B":300}}`), &target)
	for _, tt := range []struct {
		err  error
		want []detail
	}{
		{fmt.Errorf("can't decode JSON body: %w", mismatch), []detail{{`["body","A.B"]`, "value_error", "Input could not be read"}}},
		{errors.New("too many values"), []detail{{`["body"]`, "value_error", "Input could not be read"}}},
		{fault.Shape(fault.Detail{Loc: []any{"body", "x"}, Type: "t", Msg: "m"}), []detail{{`["body","x"]`, "t", "m"}}},
	} {
		mux, _ := failing(func(m *web.Mux, w http.ResponseWriter, r *http.Request) { m.RequestError(w, r, tt.err) })
		got := problemsOf(t, send(t, mux, http.MethodGet, "/fail", ""))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("problems of %v (-want +got):\n%s", tt.err, diff)
		}
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	mux, _ := failing(func(_ *web.Mux, w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, web.RequestID(r.Context())) })
	for given, kept := range map[string]bool{
		"abc-123":                true,
		strings.Repeat("x", 128): true,
		strings.Repeat("x", 129): false,
		"":                       false,
		"two words":              false,
		"ümlaut":                 false,
		"line\x01":               false,
	} {
		w := send(t, mux, http.MethodGet, "/fail", "", "X-Request-Id", given)
		got := w.Header().Get("X-Request-Id")
		if got == "" || (got == given) != kept || w.Body.String() != got {
			t.Errorf("id %q: got header %q and context %q; want it kept: %v", given, got, w.Body, kept)
		}
	}
	if w := send(t, mux, http.MethodGet, "/nowhere", ""); w.Header().Get("X-Request-Id") == "" {
		t.Error("a 404 has no X-Request-Id")
	}
	if got := web.RequestID(t.Context()); got != "" {
		t.Errorf("outside of a request: got %q", got)
	}
}

func TestRequestLog(t *testing.T) {
	t.Parallel()
	mux, l := failing(func(_ *web.Mux, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "12345")
	})
	send(t, mux, http.MethodGet, "/fail?token=hush", "", "X-Request-Id", "r-1", "X-Api-Key", "hush")
	for _, want := range []string{`msg=request method=GET route="GET /fail" status=418 duration=`, " bytes=5 request_id=r-1\n"} {
		if !strings.Contains(l.String(), want) {
			t.Errorf("log lacks %q:\n%s", want, l)
		}
	}
	if strings.Contains(l.String(), "hush") || strings.Count(l.String(), "\n") != 1 {
		t.Errorf("log:\n%s", l)
	}
}
